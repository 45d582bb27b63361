"""The callbacks of the training loop: console, metrics, evaluation, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from t2t_jax.config import Config
from t2t_jax.devices.distributed.gather import Cancelled
from t2t_jax.devices.distributed.processes import (
    SINGLE_PROCESS,
    Processes,
    broadcast_from_first,
)
from t2t_jax.devices.fault_injection import maybe_inject_fault
from t2t_jax.evaluation.evaluator import Evaluator
from t2t_jax.run.dev_outputs import FOLDER, DevOutputs
from t2t_jax.run.estimates import RunSize, estimate
from t2t_jax.run.state_checkpoints import RunCheckpointer
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.optimizer import learning_rate
from t2t_jax.training.progress_and_patience import Record, RunProgress
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import MetricsWriter, NullMetricsWriter
from t2t_jax.training.reporting.profiler import Profiler
from t2t_jax.training.state import TrainState, evaluation_params
from t2t_jax.training.step_meter import (
    check_divergence,
    skip_message,
    uniform_guess_warning,
)

# An estimate needs more steps than this, or more time.
_ESTIMATED_STEPS, _ESTIMATED_SECONDS, _FEWEST_STEPS = 19, 20.0, 2


class RunCallbacks:
    """Implements `training.loop.Callbacks` for a run.

    Attributes:
      write_report: called on process 0 after each evaluation; raises nothing.
    """

    def __init__(
        self,
        config: Config,
        *,
        workdir: Workdir,
        console: Console,
        metrics: MetricsWriter | NullMetricsWriter,
        checkpointer: RunCheckpointer,
        evaluator: Evaluator | None,
        size: RunSize,
        processes: Processes = SINGLE_PROCESS,
    ):
        self._config, self._workdir = config, workdir
        self._console, self._metrics = console, metrics
        self._checkpointer, self._evaluator = checkpointer, evaluator
        self._processes = processes
        self.write_report: Callable[[], None] = lambda: None
        self._size, self._estimated = size, False
        self._shown_first: tuple[int, float] | None = None
        self._paused = 0.0
        self._has_warned = False
        self._scores: dict[int, dict[str, float]] = {}
        folder = workdir.path / "profile" / config.profile.steps.replace(":", "-")
        if processes.count > 1:  # JAX names files by host, which may be shared.
            folder /= f"rank-{processes.index}"
        self.profile = Profiler(config.profile.span, folder=folder, log=console.log)

    def log(self, record: Record) -> None:
        """Writes a training record; logs the failure of a checkpoint save."""
        self._metrics.write(self._with_rate(record))
        self._console.remember(record)
        self._checkpointer.check_for_errors()

    def show(self, record: Record) -> None:
        """Shows a training record, and once, after enough steps, the time left."""
        self._console.show(self._with_rate(record))
        now, step = time.perf_counter() - self._paused, record["step"]
        first, begun = self._shown_first = self._shown_first or (step, now)
        steps, seconds = step - first, now - begun
        is_soon = steps < _FEWEST_STEPS or seconds < _ESTIMATED_SECONDS
        if self._estimated or (steps < _ESTIMATED_STEPS and is_soon):
            return
        self._estimated = True
        if step < self._size.steps:
            pace = record["target_tokens_per_second"]
            step_seconds = seconds / steps
            self._console.log(
                estimate(
                    self._size, step, step_seconds=step_seconds, tokens_per_second=pace
                )
            )

    @contextmanager
    def _not_training(self) -> Iterator[None]:
        """Excludes the time inside from the estimate."""
        began = time.perf_counter()
        yield
        self._paused += time.perf_counter() - began

    def skip(self, record: Record) -> None:
        """Writes and shows a skipped step; ends a run that has diverged."""
        self._metrics.write(record)
        self._console.log(skip_message(record, workdir=self._workdir.path))
        check_divergence(record, config=self._config.training)

    def evaluate(self, state: TrainState, step: int) -> Record | None:
        """Scores the development set, and shows and writes sample translations.

        Returns:
          The record; empty if evaluation is off, None if it was cancelled.
        """
        if self._evaluator is None:
            return {}
        self._console.begin(f"Evaluating step {step:,} …")
        maybe_inject_fault(step, "evaluating")
        try:
            with self._not_training():
                record, hypotheses = self._evaluator.evaluate(
                    evaluation_params(state), step=step
                )
        except Cancelled:
            return None
        self._scores = {
            step: {name: record[name] for name in ("bleu", "f1") if name in record}
        }
        self._metrics.write(record)
        samples = self._evaluator.samples(
            hypotheses, self._config.evaluation.num_samples
        )
        write = self._workdir.write_samples
        self._metrics.attempt(f"samples/{step}.txt", write, step, samples + "\n")
        self._metrics.write_samples(step, samples)
        self._write_outputs(step, hypotheses)
        self._console.log_evaluation(record, samples)
        self._warn_of_divergence(record)
        if self._processes.is_first:
            self.write_report()
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

    def _write_outputs(self, step: int, hypotheses: Sequence[str]) -> None:
        """Writes all translations of an evaluation, if there are all."""
        evaluator = self._evaluator
        if evaluator is None or len(hypotheses) < len(evaluator.sources):
            return
        self._metrics.attempt(
            f"{FOLDER}/{step}.txt",
            partial(
                DevOutputs(self._workdir.path).write,
                sources=evaluator.sources,
                references=evaluator.references,
            ),
            step,
            hypotheses,
        )

    def is_time(self, step: int, due: bool) -> bool:
        """Broadcasts whether an interval by the clock is over, as process 0 sees it."""
        if self._processes.count == 1:
            return due
        if step % self._config.logging.every_steps:
            return False
        return broadcast_from_first(
            self._processes, f"time at {step}", str(due)
        ) == str(True)

    def save(
        self, state: TrainState, progress: RunProgress, kinds: tuple[str, ...]
    ) -> None:
        """Saves a checkpoint; waits for it if it is the last of this process."""
        scores = self._scores.get(progress.step, {})
        with self._not_training():
            self._checkpointer.save(state, progress, kinds=kinds, scores=scores)
        maybe_inject_fault(progress.step, "saving")
        if "stopped" in kinds or "final" in kinds:
            self._checkpointer.wait()
            self._console.log(f"Saved step {progress.step:,} in {self._workdir.path}.")

    def _with_rate(self, record: Record) -> Record:
        """Adds the learning rate of the record's last update."""
        rate = learning_rate(
            record["step"] - record["skipped"] - 1,
            config=self._config.optimizer,
            d_model=self._config.network.d_model,
        )
        return {**record, "learning_rate": float(rate)}
