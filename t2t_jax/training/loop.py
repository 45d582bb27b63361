"""The training loop: step, log, evaluate, save.

Files and corpora are behind the `Callbacks`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from t2t_jax.devices.distributed.processes import current_processes
from t2t_jax.devices.fault_injection import maybe_inject_fault
from t2t_jax.training.compiled_step import StepCompiler
from t2t_jax.training.progress_and_patience import (
    Intervals,
    Kinds,
    Record,
    RunProgress,
    Score,
    best_by,
)
from t2t_jax.training.reporting.profiler import Profiler
from t2t_jax.training.state import TrainState
from t2t_jax.training.step_meter import ACTIVITIES, StepMeter
from t2t_jax.training.stopping import StopRequest, Watchdog
from t2t_jax.types import Batch, DataPosition

_ALWAYS_SHOWN = (1, 20)
"""Steps of a process whose metrics are always shown: that it trains at all, and enough
to estimate the time left."""


class Callbacks(Protocol):
    """What the loop calls.

    Attributes:
      must_stop: whether to save and end, the same on all processes.
    """

    profile: Profiler
    must_stop: bool

    def log(self, record: Record, state: TrainState) -> None:
        """Writes the metrics of the steps since the last call."""

    def show(self, record: Record) -> None:
        """Shows the metrics of the steps since the last `log` on the console."""

    def skip(self, record: Record) -> None:
        """Writes and shows a skipped update; may end the run."""

    def evaluate(self, state: TrainState, step: int) -> Record | None:
        """Evaluates the development set; None if cancelled by a stop request."""

    def is_time(self, step: int, due: bool) -> bool:
        """Returns whether to save by time, the same on all processes.

        Args:
          due: by this process's clock.
        """

    def save(self, state: TrainState, progress: RunProgress, kinds: Kinds) -> None:
        """Writes a checkpoint, and replaces one of the same step."""


@dataclass
class TrainingLoop:
    """Trains, and does what is due after each step.

    Attributes:
      step: the compiled step; compilation does not count as training time.
    """

    step: StepCompiler
    intervals: Intervals
    callbacks: Callbacks
    stop: StopRequest
    watchdog: Watchdog
    meter: StepMeter = field(init=False)
    steps_here: int = 0

    def train(
        self,
        state: TrainState,
        batches: Iterable[tuple[DataPosition, Batch]],
        progress: RunProgress,
    ) -> tuple[TrainState, RunProgress]:
        """Trains until `intervals.steps`, a stop request, or the end of the patience.

        Args:
          state: after `progress.step` steps; its buffers are donated.
          batches: from `progress.position` on, each with the position after it.

        Returns:
          The last state and its progress; both have been saved.

        Raises:
          DivergedError: from `callbacks.skip`, after too many skipped updates.
        """
        self.meter, ends = StepMeter(progress, skip=self.callbacks.skip), self.intervals
        is_over = progress.completes(ends.steps, patience=ends.patience)
        if progress.pending:
            progress, is_over = self.repeat_evaluation(state, progress)
        for position, batch in () if is_over else self.meter.fetch(batches):
            before, number = progress, progress.step + 1
            state = self.run_step(state, batch, number=number, position=before.position)
            progress = progress._replace(
                step=number, position=position, minutes=self.meter.minutes
            )
            maybe_inject_fault(number)
            self.log(state, number)
            self.end_profile(number)
            progress, is_over = self.finish_step(state, before, progress)
            if is_over:
                break
        return state, progress

    def run_step(
        self, state: TrainState, batch: Batch, *, number: int, position: DataPosition
    ) -> TrainState:
        """Runs one step; compiles it and starts the profile before, if due."""
        profile = self.callbacks.profile
        if not self.step.is_ready(batch):
            with self._not_training("compiling"):
                self.step.compile_for_batch(batch)
        if profile.starts_at(number):
            with self._not_training("starting a profile"):
                profile.start(number)
        with profile.annotate(number):
            state, output = self.step(state, batch)
        self.meter.add(output, step=number, position=position)
        self.watchdog.step_done(number)
        self.steps_here += 1
        return state

    def log(self, state: TrainState, step: int) -> None:
        """Logs and shows metrics, whichever is due.

        What is logged depends on the step only, so that a resumed run writes the same
        records; what is shown depends on the clock and the steps of this process.
        """
        meter, intervals = self.meter, self.intervals
        last = step == intervals.steps
        to_log = last or step == 1 or step % intervals.log == 0
        to_show = last or self.steps_here in _ALWAYS_SHOWN
        to_show |= time.perf_counter() - meter.last_shown >= intervals.show_seconds
        if to_log and (record := meter.make_record(step)):
            with self.meter.paused():
                self.callbacks.log(record, state)
        if to_show and (record := meter.make_record(step, to_show=True)):
            self.callbacks.show(record)
        if to_log:
            meter.close_window()
        if to_show:
            meter.last_shown = time.perf_counter()

    def end_profile(self, step: int) -> None:
        """Writes the profile, if due."""
        # A stop request comes first, in a single process: several must all write it.
        stops = current_processes().count == 1 and self.stop.stop_requested()
        if self.callbacks.profile.ends_at(step) and not stops:
            with self._not_training("writing a profile"):
                self.callbacks.profile.stop()

    def finish_step(
        self, state: TrainState, before: RunProgress, now: RunProgress
    ) -> tuple[RunProgress, bool]:
        """Evaluates and saves after a step, if due.

        Args:
          before: the progress before the step.

        Returns:
          The progress, as saved if there is a checkpoint; and whether training ends.
        """
        kinds = ("periodic",) * self._is_periodic(before, now)
        score = self._evaluate(state, now.step)
        if score is None:
            kinds += ("stopped",)
            return self._save(state, now._replace(pending=kinds), kinds), True
        now, kinds, is_last = self._after_evaluation(now, score, kinds)
        # Read once: a signal between here and the end would leave without saving.
        stops = not is_last and (
            self.stop.should_stop(now.step) or self.callbacks.must_stop
        )
        kinds += ("stopped",) * stops
        return self._save(state, now, kinds) if kinds else now, is_last or stops

    def repeat_evaluation(
        self, state: TrainState, now: RunProgress
    ) -> tuple[RunProgress, bool]:
        """Repeats the evaluation that `now.pending` names, and saves the step again.

        Cancelled once more, it leaves the checkpoint as it is.
        """
        score = self._evaluate(state, now.step, force=True)
        if score is None:
            return now, True
        due = tuple(kind for kind in now.pending if kind != "stopped")
        done, kinds, is_last = self._after_evaluation(now, score, due)
        return self._save(state, done, kinds or now.pending), is_last

    def _after_evaluation(
        self, now: RunProgress, score: Score, kinds: Kinds
    ) -> tuple[RunProgress, Kinds, bool]:
        """Returns the progress, the kinds of its checkpoint, and whether it is last."""
        kinds += ("best",) * (score > now.best)
        now = now._replace(pending=()).after_evaluation(score)
        is_last = now.completes(self.intervals.steps, patience=self.intervals.patience)
        return now, kinds + ("final",) * is_last, is_last

    def _evaluate(
        self, state: TrainState, step: int, *, force: bool = False
    ) -> Score | None:
        """Evaluates if due; returns an empty score if not, None if cancelled."""
        every = self.intervals.evaluate
        is_due = every and (step >= self.intervals.steps or step % every == 0)
        if not (is_due or (force and every)):
            return Score()
        with self._not_training("evaluating", step):
            record = self.callbacks.evaluate(state, step)
        return None if record is None else best_by(record)

    def _is_periodic(self, before: RunProgress, now: RunProgress) -> bool:
        """Returns whether a periodic checkpoint is due."""
        every = self.intervals
        epochs, minutes = every.save_epochs, every.save_minutes
        is_late = now.minutes - now.saved_minutes >= minutes
        old, new = (one.position.epoch // (epochs or 1) for one in (before, now))
        return bool(
            (every.save_steps and now.step % every.save_steps == 0)
            or (minutes and self.callbacks.is_time(now.step, is_late))
            or (epochs and new > old)
        )

    def _save(self, state: TrainState, now: RunProgress, kinds: Kinds) -> RunProgress:
        self.meter.drain()
        now = self.meter.store_in(now)
        if "periodic" in kinds:
            now = now._replace(saved_minutes=now.minutes)
        with self._not_training("saving", now.step):
            self.callbacks.save(state, now, kinds)
        return now

    @contextmanager
    def _not_training(self, what: str, step: int = 0) -> Iterator[None]:
        """Excludes an activity from the training time, and extends the watchdog."""
        self.meter.drain()
        activity = what if what in ACTIVITIES else "other"
        what += f" step {step:,}" * (step > 0)
        with self.meter.paused(activity), self.watchdog.extended(what):
            yield
