"""The training step, compiled anew for each shape of batch that comes."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
from jax.sharding import Mesh

from t2t_jax.parallelism.arrays import to_devices
from t2t_jax.parallelism.sharding import replicated
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput, compile_step
from t2t_jax.types import Batch

Step = Callable[[TrainState, Batch, jax.Array], tuple[TrainState, StepOutput]]


class CompiledSteps:
    """Runs a step on batches from the host; `loop.Step` for the loop.

    Args:
      step: `train_step` with everything but state, batch and key bound.
      state: the shapes of the state.
      mesh: the devices.
      key: the run's dropout key.
      say: tells people what is being done.
      about: how long compiling takes, in words.
      name_shapes: whether there are several, so that people are told which.
    """

    def __init__(
        self,
        step: Step,
        state: TrainState,
        *,
        mesh: Mesh,
        key: jax.Array,
        say: Callable[[str], None],
        about: str,
        name_shapes: bool,
    ):
        self._step, self._state, self._mesh = step, state, mesh
        self._key = jax.device_put(key, replicated(mesh))
        self._say, self._about, self._name_shapes = say, about, name_shapes
        self._compiled: dict[tuple[int, int], Step] = {}

    def __call__(
        self, state: TrainState, batch: Batch
    ) -> tuple[TrainState, StepOutput]:
        """Makes a step, whose state is donated, on a batch that it is ready for."""
        compiled = self._compiled[_shape_of(batch)]
        return compiled(state, to_devices(batch, self._mesh), self._key)

    def is_ready(self, batch: Batch) -> bool:
        """Tells whether the step has been compiled for batches of this shape."""
        return _shape_of(batch) in self._compiled

    def make_ready(self, batch: Batch) -> None:
        """Compiles the step for batches of this shape."""
        self.compile_for(_shape_of(batch))

    def compile_for(self, shape: tuple[int, int]) -> None:
        """Compiles the step for batches of so many rows and slots, and says so."""
        of_shape = f" for {shape[0]:,} rows of {shape[1]} slots" * self._name_shapes
        self._say(f"Compiling the training step{of_shape}, {self._about} …")
        began = time.perf_counter()
        self._compiled[shape] = compile_step(
            self._step, self._state, batch_shape=shape, mesh=self._mesh
        )
        self._say(f"Compiled in {time.perf_counter() - began:.0f} s.")


def _shape_of(batch: Batch) -> tuple[int, int]:
    rows, length = batch.source.shape
    return rows, length
