"""The program's own training step on some of the devices, for measuring it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from made_up_batches import made_up_batch

from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.sharding.rules import make_global_batch
from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.counting import training_flops
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state, state_shapes, state_shardings
from t2t_jax.training.step import lower_step, make_train_step
from t2t_jax.types import Batch

DEFAULT = TrainingConfig()
SIZES = {
    "small": TransformerConfig(
        vocab_size=1_000,
        num_layers=2,
        d_model=128,
        d_ff=512,
        num_heads=8,
        d_k=16,
        d_v=16,
    ),
    "base": TransformerConfig(),
    "big": TransformerConfig(d_model=1024, d_ff=4096, num_heads=16),
}


class Trainee:
    """The training step on some devices.

    It is compiled here and can be run where the devices are real.

    Args:
      config: of the model.
      devices: real, simulated, or of a topology that is not there.
      mesh: which axis they lie on; `optimizer` is data, with the moments split.
      batch: (rows, slots of a row).
      training: of the step: label smoothing, micro-batches.
      full: whether every slot holds a token; else there are rows of all lengths.
      segment: slots of each sentence, where full rows hold several.

    Attributes:
      compiled: the step.
      devices: how many there are.
      compute_dtype: of activations on these devices.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        devices: Sequence[jax.Device],
        mesh: str,
        batch: tuple[int, int],
        training: TrainingConfig = DEFAULT,
        full: bool = False,
        segment: int = 0,
    ):
        self.config, self.devices, self.batch_shape = config, len(devices), batch
        self._full, self._segment = full, segment
        axis = "data" if mesh == "optimizer" else mesh
        sizes = {"data": 1, axis: len(devices)}
        self.mesh = make_mesh(devices, **sizes)
        optimizer = make_optimizer(OptimizerConfig(), d_model=self.config.d_model)
        module = make_module(self.config, devices=devices, mesh=self.mesh.shape)
        self.compute_dtype = module.config.compute_dtype
        self._init = partial(init_state, module, optimizer, 0)
        self._shapes = state_shapes(module, optimizer)
        sharded = mesh == "optimizer"
        self._places = state_shardings(self._shapes, self.mesh, shard_optimizer=sharded)
        step = make_train_step(
            module,
            optimizer,
            mesh=self.mesh,
            config=training,
            shardings=self._places,
        )
        self.compiled = lower_step(step, self._shapes, batch_shape=batch).compile()

    def begin(self) -> None:
        """Draws the state, on the devices."""
        self._key = jax.random.key(1)
        self._state = self._init(shardings=self._places)

    def step(self, number: int) -> Any:
        """Makes a step on a batch that is the same on any number of devices."""
        batch = make_global_batch(self._drawn(number), self.mesh)
        self._state, output = self.compiled(self._state, batch, self._key)
        return output

    def seconds(self, steps: int) -> float:
        """Times so many steps, batches ready."""
        batch = make_global_batch(self._drawn(0), self.mesh)
        jax.block_until_ready(batch)
        began = time.perf_counter()
        for _ in range(steps):
            self._state, output = self.compiled(self._state, batch, self._key)
        jax.block_until_ready((self._state, output))
        return time.perf_counter() - began

    def bytes_of_state(self) -> int:
        """Counts the bytes of parameters and optimizer on one device."""
        pairs = zip(
            jax.tree.leaves(self._shapes), jax.tree.leaves(self._places), strict=True
        )
        return sum(
            math.prod(place.shard_shape(leaf.shape)) * leaf.dtype.itemsize
            for leaf, place in pairs
        )

    def parameters(self) -> int:
        """Counts the parameters, wherever they are."""
        return sum(leaf.size for leaf in jax.tree.leaves(self._shapes.params))

    def flops(self) -> float:
        """Counts the operations of a step by formula, padding included."""
        rows, length = self.batch_shape
        of_a_row = training_flops(
            self.config, source_length=length, target_length=length
        )
        return rows * sum(of_a_row.values())

    def _drawn(self, number: int) -> Batch:
        return made_up_batch(
            *self.batch_shape,
            self.config.vocab_size,
            seed=number,
            full=self._full,
            segment=self._segment,
        )
