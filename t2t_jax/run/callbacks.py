"""What a run shows, writes down and saves when the training loop asks for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from t2t_jax.config import Config
from t2t_jax.distributed.consensus import broadcast_from_first
from t2t_jax.distributed.gather import Cancelled
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.evaluation.evaluator import Evaluator
from t2t_jax.run.state_checkpoints import RunCheckpointer
from t2t_jax.run.time_estimate import RunSize, estimate
from t2t_jax.run.workdir import Workdir
from t2t_jax.runtime.fault_injection import maybe_inject_fault
from t2t_jax.training.optimizer import learning_rate
from t2t_jax.training.profiling.profiler import Profiler
from t2t_jax.training.progress import Record, RunProgress
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import MetricsWriter, NullMetricsWriter
from t2t_jax.training.skipped_steps import check_divergence, skip_message
from t2t_jax.training.state import TrainState

# Fewer steps are no base for an estimate, unless they have taken a minute.
_ESTIMATED_STEPS, _ESTIMATED_SECONDS = 19, 60.0


class RunCallbacks:
    """Keeps the records of a run; `turn.Callbacks` for the loop.

    Args:
      evaluator: what scores them; None if evaluation is off.
      size: of the run, to estimate how long it takes.
      processes: those that run the experiment together.

    Attributes:
      profile: of the steps that `config.profile` asks for.
    """

    def __init__(
        self,
        config: Config,
        *,
        workdir: Workdir,
        console: Console,
        reporter: MetricsWriter | NullMetricsWriter,
        snapshots: RunCheckpointer,
        evaluator: Evaluator | None,
        size: RunSize,
        processes: Processes = SINGLE_PROCESS,
    ):
        self._config, self._workdir = config, workdir
        self._console, self._reporter = console, reporter
        self._snapshots, self._evaluator = snapshots, evaluator
        self._processes = processes
        self._size, self._estimated = size, False
        self._shown_first: tuple[int, float] | None = None
        self._paused = 0.0
        self._bleu: dict[int, float] = {}
        folder = workdir.path / "profile" / config.profile.steps.replace(":", "-")
        if processes.count > 1:  # They may be on one machine, whose name JAX takes.
            folder /= f"rank-{processes.index}"
        self.profile = Profiler(config.profile.span, folder=folder, say=console.log)

    def log(self, record: Record) -> None:
        """Writes down a training record; tells of a save that has failed by now."""
        self._reporter.write(self._with_rate(record))
        self._snapshots.check()

    def show(self, record: Record) -> None:
        """Shows a training record on the console, and once how long the run takes."""
        self._console.show(self._with_rate(record))
        if not self._estimated:
            self._estimate(record)

    def _estimate(self, record: Record) -> None:
        """Estimates the time left, when enough steps have been made to do so."""
        now = time.perf_counter() - self._paused
        if self._shown_first is None:
            self._shown_first = (record["step"], now)
            return
        steps = record["step"] - self._shown_first[0]
        seconds = now - self._shown_first[1]
        if steps < _ESTIMATED_STEPS and seconds < _ESTIMATED_SECONDS:
            return
        self._estimated = True
        if record["step"] < self._size.steps:
            self._console.log(
                estimate(
                    self._size,
                    record["step"],
                    step_seconds=seconds / steps,
                    tokens_per_second=record["target_tokens_per_second"],
                )
            )

    @contextmanager
    def _pause(self) -> Iterator[None]:
        """Keeps what is not training out of the estimate."""
        began = time.perf_counter()
        yield
        self._paused += time.perf_counter() - began

    def skip(self, record: Record) -> None:
        """Writes down and shows a step without an update; ends a run that diverged."""
        self._reporter.write(record)
        self._console.log(skip_message(record, workdir=self._workdir.path))
        check_divergence(record, config=self._config.training)

    def evaluate(self, state: TrainState, step: int) -> Record | None:
        """Scores the development set, and shows and writes sample translations."""
        if self._evaluator is None:
            return {}
        self._console.begin(f"Evaluating step {step:,} …")
        maybe_inject_fault(step, "evaluating")
        try:
            with self._pause():
                record, hypotheses = self._evaluator.evaluate(state.params, step=step)
        except Cancelled:
            return None
        self._bleu = {step: record["bleu"]} if "bleu" in record else {}
        self._reporter.write(record)
        samples = self._evaluator.samples(
            hypotheses, self._config.evaluation.num_samples
        )
        write = self._workdir.write_samples
        self._reporter.attempt(f"samples/{step}.txt", write, step, samples + "\n")
        self._reporter.write_samples(step, samples)
        self._console.say_evaluation(record, samples)
        return record

    def is_time(self, step: int, due: bool) -> bool:
        """Lets the first process's clock decide for all, where it is asked."""
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
        """Writes a checkpoint; waits for it if it is the last of this process."""
        bleu = self._bleu.get(progress.step)
        with self._pause():
            self._snapshots.save(state, progress, kinds=kinds, bleu=bleu)
        maybe_inject_fault(progress.step, "saving")
        if "stopped" in kinds or "final" in kinds:
            self._snapshots.wait()
            self._console.log(f"Saved step {progress.step:,} in {self._workdir.path}.")

    def _with_rate(self, record: Record) -> Record:
        """Adds the learning rate of the record's last update."""
        rate = learning_rate(
            record["step"] - record["skipped"] - 1,
            config=self._config.optimizer,
            d_model=self._config.network.d_model,
        )
        return {**record, "learning_rate": float(rate)}
