"""A run of fake steps, for what the loop does around them."""

import math
from contextlib import contextmanager
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np

from t2t_jax.training import loop
from t2t_jax.training.loss import Sums
from t2t_jax.training.progress_and_patience import Intervals, RunProgress
from t2t_jax.training.reporting.profiler import Profiler
from t2t_jax.training.step import StepOutput
from t2t_jax.types import DataPosition

BATCHES_PER_EPOCH = 5


class Run:
    """A run of fake steps that writes down what is called when.

    Keywords set the attributes of the same name.
    """

    def __init__(self, monkeypatch, **attributes):
        self.timeline, self.records, self.saved = [], [], []
        self.shown, self.skipped, self.pauses = [], [], []
        self.bleus, self.losses, self.dev_losses = {}, {}, {}
        self.stop_at, self.interrupted = (), ()
        self.steps, self.clock, self.wait = 0, 0.0, 0.0
        self.shapes, self.ready = [], {None}
        self.asked_every = 1
        self.profile = Profiler(range(0), folder=None, log=print)
        self.must_stop = False
        self.stop = SimpleNamespace(
            should_stop=lambda step: step in self.stop_at, stop_requested=lambda: False
        )
        monkeypatch.setattr(loop.time, "perf_counter", lambda: self.clock)
        vars(self).update(attributes)

    def is_ready(self, batch):
        return batch in self.ready

    def compile_for_batch(self, batch):
        self.clock += 200.0  # is not training time
        self.timeline.append(f"compile {batch}")
        self.ready.add(batch)

    def __call__(self, state, batch):
        assert self.is_ready(batch)
        self.steps += 1
        self.clock += 1.0
        loss = self.losses.get(state + 1, 2.0)
        sums = Sums(np.float32(loss), np.float32(1.0), 0, 1, 1, 4)
        good = np.bool_(math.isfinite(loss))
        return state + 1, StepOutput(sums, jnp.float32(0.5 + state), good)

    def log(self, record, state):
        assert state == record["step"]
        self.timeline.append(f"log {record['step']}")
        self.records.append(record)

    def show(self, record):
        self.shown.append((record["step"], record["loss"]))

    def skip(self, record):
        self.timeline.append(f"skip {record['step']}")
        self.skipped.append(record)

    def evaluate(self, state, step):
        self.clock += 1_000.0  # is not training time
        assert state == step
        if step in self.interrupted:
            self.timeline.append(f"give up evaluating {step}")
            return None
        self.timeline.append(f"evaluate {step}")
        if step not in self.bleus:
            return {}
        return {"bleu": self.bleus[step], "loss": self.dev_losses.get(step)}

    def is_time(self, step, due):
        return due and step % self.asked_every == 0

    def save(self, state, progress, kinds):
        self.clock += 500.0  # is not training time
        self.timeline.append(f"save {progress.step}: {' '.join(kinds)}")
        assert state == progress.step
        self.saved.append(progress)

    @property
    def saves(self):
        return [event for event in self.timeline if event.startswith("save")]

    def train(self, progress=None, **intervals):
        """Trains on, and returns the progress; log and evaluate default to never."""
        progress = progress or RunProgress()
        every = Intervals(**{"log": 1_000, "evaluate": 1_000} | intervals)
        run = loop.TrainingLoop(self, every, self, self.stop, watchdog=self)
        batches = self._batches(progress.position)
        state, progress = run.train(progress.step, batches, progress)
        assert state == progress.step
        return progress

    def step_done(self, step):
        pass

    @contextmanager
    def extended(self, what):
        self.pauses.append(what)
        yield

    def _batches(self, position):
        epoch, batch = position
        while True:
            self.clock += self.wait
            batch += 1
            if batch == BATCHES_PER_EPOCH:
                epoch, batch = epoch + 1, 0
            shape = self.shapes.pop(0) if self.shapes else None
            yield DataPosition(epoch, batch), shape
