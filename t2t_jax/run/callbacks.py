"""The callbacks of the training loop: console, metrics, evaluation, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from t2t_jax.devices.distributed.gather import Cancelled
from t2t_jax.devices.distributed.processes import (
    all_reduce_min,
    broadcast_from_first,
)
from t2t_jax.devices.fault_injection import maybe_inject_fault
from t2t_jax.errors import UserError
from t2t_jax.evaluation.evaluator import Evaluator
from t2t_jax.run.dev_outputs import FOLDER, DevOutputs
from t2t_jax.training.optimizer import Schedule
from t2t_jax.training.progress_and_patience import Kinds, Record, RunProgress
from t2t_jax.training.reporting.metrics_writer import MetricsWriter
from t2t_jax.training.reporting.profiler import Profiler
from t2t_jax.training.state import TrainState, evaluation_params
from t2t_jax.training.step_meter import (
    check_divergence,
    skip_message,
    uniform_guess_warning,
)

if TYPE_CHECKING:
    from t2t_jax.run.trainer import Trainer

Callback: TypeAlias = Callable[[Record, TrainState], object]
"""A function of a user, called with a record and the state after its step."""

# An estimate needs this many steps, or two that took this many seconds.
_ESTIMATED_STEPS, _ESTIMATED_SECONDS, _FEWEST_STEPS = 19, 20.0, 2


@dataclass
class RunCallbacks:
    """Implements `training.loop.Callbacks` for a run.

    Attributes:
      run: what is trained.
      evaluator: None if evaluation is off.
      must_stop: whether a callback of the user has raised an error, on any process.
    """

    run: Trainer
    metrics: MetricsWriter
    evaluator: Evaluator | None
    must_stop: bool = False
    profile: Profiler = field(init=False)

    def __post_init__(self) -> None:
        run, self._config = self.run, self.run.config
        self._console, self._processes = run.console, run.processes
        self._failure: Exception | None = None
        self._shown_first: tuple[int, float] | None = None
        self._has_estimated = self._has_warned = False
        self._paused, self._scores = 0.0, dict[int, Record]()
        steps = self._config.profile
        folder = run.workdir.path / "profile" / steps.steps.replace(":", "-")
        if self._processes.count > 1:  # JAX names files by host, which may be shared.
            folder /= f"rank-{self._processes.index}"
        self.profile = Profiler(steps.span, folder=folder, log=self._console.log)

    def log(self, record: Record, state: TrainState) -> None:
        """Writes a training record; logs the failure of a checkpoint save."""
        record = with_learning_rate(record, self.run.schedule)
        self.metrics.write(record)
        self._console.remember(record)
        self.run.checkpointer.check_for_errors()
        self._call_others(record, state)

    def _call_others(self, record: Record, state: TrainState) -> None:
        """Calls what the user has given; an error is raised when the run has ended."""
        if not self.run.callbacks or self.must_stop:
            return
        try:
            with self._not_training():
                for callback in self.run.callbacks:
                    callback(dict(record), state)
        except Exception as error:
            self._failure = error
        name = f"callbacks at {record['step']}, {record['kind']}"
        is_well = int(self._failure is None)
        self.must_stop = not all_reduce_min(self._processes, name, is_well)

    def raise_failure(self) -> None:
        """Raises the error of a callback of the user, if there was one."""
        if self._failure:
            raise self._failure
        if self.must_stop:
            raise UserError("A callback of another process has raised an error.")

    def show(self, record: Record) -> None:
        """Shows a training record, and once, after enough steps, the time left."""
        self._console.show(with_learning_rate(record, self.run.schedule))
        now, step = time.perf_counter() - self._paused, record["step"]
        self._shown_first = self._shown_first or (step, now)
        steps, seconds = step - self._shown_first[0], now - self._shown_first[1]
        fewest = _FEWEST_STEPS if seconds >= _ESTIMATED_SECONDS else _ESTIMATED_STEPS
        if self._has_estimated or steps < fewest:
            return
        self._has_estimated = True
        if step < self._config.steps:
            rate, pace = record["target_tokens_per_second"], seconds / steps
            left = self.run.estimate(step, step_seconds=pace, tokens_per_second=rate)
            self._console.log(left)

    @contextmanager
    def _not_training(self) -> Iterator[None]:
        """Excludes the time inside from the estimate."""
        began = time.perf_counter()
        yield
        self._paused += time.perf_counter() - began

    def skip(self, record: Record) -> None:
        """Writes and shows a skipped step; ends a run that has diverged."""
        self.metrics.write(record)
        self._console.log(skip_message(record, workdir=self.run.workdir.path))
        check_divergence(record, config=self._config.training)

    def evaluate(self, state: TrainState, step: int) -> Record | None:
        """Scores the development set, and shows and writes sample translations.

        Returns:
          The record; empty if evaluation is off, None if it was cancelled.
        """
        if (evaluator := self.evaluator) is None:
            return {}
        first = "" if self._scores else " and compiling the search"
        self._console.begin(f"Evaluating step {step:,}{first} …")
        maybe_inject_fault(step, "evaluating")
        try:
            with self._not_training():
                params = evaluation_params(state)
                record, hypotheses = evaluator.evaluate(params, step=step)
        except Cancelled:
            return None
        names = [name for name in ("bleu", "f1") if name in record]
        self._scores = {step: {name: record[name] for name in names}}
        self.metrics.write(record)
        samples = evaluator.samples(hypotheses, self._config.evaluation.num_samples)
        write, attempt = self.run.workdir.write_samples, self.metrics.attempt
        attempt(f"samples/{step}.txt", write, step, samples + "\n")
        self.metrics.write_samples(step, samples)
        if len(hypotheses) == len(evaluator.sources):
            pairs = (evaluator.sources, evaluator.references)
            outputs = DevOutputs(self.run.workdir.path)
            attempt(f"{FOLDER}/{step}.txt", outputs.write, step, hypotheses, *pairs)
        self._console.log_evaluation(record, samples)
        self._warn_of_divergence(record)
        if self._processes.is_first:
            self.run.write_report(False)
        self._call_others(record, state)
        return record

    def _warn_of_divergence(self, record: Record) -> None:
        """Warns once of a loss worse than a uniform guess."""
        warning = uniform_guess_warning(
            record,
            vocab_size=self._config.network.vocab_size,
            warmup_steps=self._config.optimizer.warmup_steps,
        )
        if warning and not self._has_warned:
            self._has_warned = True
            self._console.log(warning)

    def is_time(self, step: int, due: bool) -> bool:
        """Broadcasts whether an interval by the clock is over, as process 0 sees it."""
        if self._processes.count == 1:
            return due
        if step % self._config.logging.every_steps:
            return False
        agreed = broadcast_from_first(self._processes, f"time at {step}", str(due))
        return agreed == str(True)

    def save(self, state: TrainState, progress: RunProgress, kinds: Kinds) -> None:
        """Saves a checkpoint; waits for it if it is the last of this process."""
        scores = self._scores.get(progress.step, {})
        with self._not_training():
            self.run.checkpointer.save(state, progress, kinds=kinds, scores=scores)
        maybe_inject_fault(progress.step, "saving")
        if "stopped" in kinds or "final" in kinds:
            self.run.checkpointer.wait()
            where = self.run.workdir.path
            self._console.log(f"Saved step {progress.step:,} in {where}.")


def with_learning_rate(record: Record, schedule: Schedule | None) -> Record:
    """Adds the learning rate of the record's last update, if it is known."""
    if schedule is None:
        return record
    rate = schedule(record["step"] - record["skipped"] - 1)
    return {**record, "learning_rate": float(rate)}
