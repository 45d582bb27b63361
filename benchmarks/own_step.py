"""This package's training step as a contestant: the program's own, all of it on."""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np
from contest import Work
from own_process import peak_megabytes, surroundings
from scaled_step import Trainee

from t2t_jax.data.batching.pipeline import train_stream
from t2t_jax.data.batching.planner import batch_shapes
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.model.architectures import make_module
from t2t_jax.training.compiled_step import BatchLayout, StepCompiler
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.progress_and_patience import RunProgress
from t2t_jax.training.state import init_state, state_shapes
from t2t_jax.training.step import make_train_step
from t2t_jax.training.step_meter import StepMeter


class OwnStep:
    """The step on full rows of made-up tokens, which are on the device already."""

    def __init__(self, work: Work):
        began, packed = time.perf_counter(), work.pairs_per_row
        self._trainee = Trainee(
            work.config,
            devices=jax.devices()[:1],
            mesh="data",
            batch=(work.rows // packed, work.length * packed),
            training=work.training,
            full=True,
            segment=work.length if packed > 1 else 0,
        )
        self._compile_seconds = time.perf_counter() - began
        self._trainee.begin()

    def seconds(self, steps: int) -> float:
        """Times so many steps."""
        return self._trainee.seconds(steps)

    def facts(self) -> dict[str, Any]:
        """Tells what does not change from round to round."""
        return {
            "compile_seconds": self._compile_seconds,
            "parameters": self._trainee.parameters(),
            "dtype": self._trainee.compute_dtype,
            **surroundings("optax"),
        }

    def peak_megabytes(self) -> float:
        """Returns the most memory held so far."""
        return peak_megabytes()


class OwnLoop:
    """The program's way from encoded text to updates: its batches, its loop's meter.

    The step is compiled for all shapes of batches before the first round.
    """

    def __init__(self, work: Work):
        cache = work.text.open()
        mesh = make_mesh(jax.devices()[:1])
        module = make_module(work.config, devices=jax.devices()[:1])
        optimizer = make_optimizer(OptimizerConfig(), d_model=work.config.d_model)
        layout = BatchLayout(
            planned=batch_shapes(work.text.data, cache.lengths), mesh=mesh
        )
        step = make_train_step(module, optimizer, mesh=mesh, config=work.training)
        self._steps = StepCompiler(
            lambda _: step,
            state_shapes(module, optimizer),
            layout=layout,
            key=jax.random.key(1),
            log=lambda _: None,
            about="",
        )
        began = time.perf_counter()
        for shape in layout.shapes:
            self._steps.compile_for(shape)
        self._compile_seconds = time.perf_counter() - began
        self._state = init_state(module, optimizer, 0, mesh=mesh)
        self._meter = StepMeter(RunProgress(), skip=lambda _: None)
        self._batches = train_stream(
            cache, work.text.data, seed=0, row_multiple=layout.row_multiple
        )
        self._made, self._waited, self._trained = 0, 0.0, 0.0

    def train_for(self, seconds: float) -> tuple[float, int]:
        """Trains for a while, from where it stopped.

        Args:
          seconds: after which no step is begun.

        Returns:
          The seconds that it took, and the real target tokens of its steps.
        """
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            asked = time.perf_counter()
            place, batch = next(self._batches)
            self._waited += time.perf_counter() - asked
            self._state, output = self._steps(self._state, batch)
            self._made += 1
            self._meter.add(output, step=self._made, position=place)
            tokens += int(np.count_nonzero(batch.target_segments))
        self._meter.drain()
        self._trained += time.perf_counter() - began
        return time.perf_counter() - began, tokens

    def facts(self) -> dict[str, Any]:
        """Tells what does not change from round to round, and the steps made."""
        parameters = jax.tree.leaves(self._state.params)
        return {
            "compile_seconds": self._compile_seconds,
            "shapes": self._steps.layout.shapes,
            "parameters": sum(x.size for x in parameters),
            "steps": self._made,
            # While the host waits for a batch the device may still be computing.
            "share_waiting_for_input": self._waited / max(self._trained, 1e-9),
            **surroundings("optax"),
        }

    def peak_megabytes(self) -> float:
        """Returns the most memory held, compiling included where it is the host's."""
        return peak_megabytes()
