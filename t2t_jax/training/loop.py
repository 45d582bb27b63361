"""The training loop: it counts, and calls what is due.

It knows neither files nor corpora: evaluating, saving and reporting are callables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from t2t_jax.distributed.processes import current_processes
from t2t_jax.runtime.fault_injection import maybe_inject_fault
from t2t_jax.training.health.stop_signals import StopRequest
from t2t_jax.training.health.watchdog import Watchdog
from t2t_jax.training.profiling.profiler import Profiler
from t2t_jax.training.progress import Intervals, Record, RunProgress
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput
from t2t_jax.training.step_meter import StepMeter
from t2t_jax.types import Batch, DataPosition


class Callbacks(Protocol):
    """What the loop calls.

    Attributes:
      profile: of some of the steps, or of none.
    """

    profile: Profiler

    def log(self, record: Record) -> None:
        """Writes down figures over the steps since the last call."""

    def show(self, record: Record) -> None:
        """Shows figures over the steps since the last `log` to people."""

    def skip(self, record: Record) -> None:
        """Writes down and shows a step that made no update; may end the run."""

    def evaluate(self, state: TrainState, step: int) -> Record | None:
        """Scores the development set; None if that was given up, to stop soon.

        The record holds `bleu` if the set was decoded.
        """

    def is_time(self, step: int, due: bool) -> bool:
        """Tells whether to save, `due` by this process's clock; alike on all."""

    def save(
        self, state: TrainState, progress: RunProgress, kinds: tuple[str, ...]
    ) -> None:
        """Writes a checkpoint, in the place of one of this step that is there.

        Args:
          state: after `progress.step` steps.
          kinds: of periodic, best, final, stopped.
        """


@dataclass(frozen=True)
class Turn:
    """Opens and closes each step of a run.

    Attributes:
      meter: of the run; what is done here is not training time.
      intervals: what is due when.
      callbacks: what is called when it is due.
      stop: asked after each step.
      deadlines: told of what is done between two steps.
    """

    meter: StepMeter
    intervals: Intervals
    callbacks: Callbacks
    stop: StopRequest
    deadlines: Watchdog

    @contextmanager
    def not_training(self, what: str) -> Iterator[None]:
        """Keeps what is not training out of its time, and gives it a limit."""
        with self.meter.paused(), self.deadlines.extended(what):
            yield

    def start_step(self, step: int) -> AbstractContextManager[object]:
        """Begins the profile, if it is due.

        Returns:
          What to make the step in.
        """
        profile = self.callbacks.profile
        if profile.begins_with(step):
            self.meter.drain()
            with self.not_training("beginning a profile"):
                profile.begin(step)
        return profile.named(step)

    def end_step(
        self, state: TrainState, before: RunProgress, now: RunProgress
    ) -> tuple[RunProgress, bool]:
        """Profiles, evaluates and saves what is due, or what is still pending.

        Args:
          before: where the run stood before it.

        Returns:
          Where the run stands, with what is written in its checkpoint if there is
          one; and whether it is over.
        """
        # Who is to stop saves first: alone, for several have to write at the same step.
        in_haste = current_processes().count == 1 and self.stop.stop_requested()
        if self.callbacks.profile.ends_with(now.step) and not in_haste:
            self.meter.drain()
            with self.not_training("writing a profile"):
                self.callbacks.profile.end()
        pending, now = now.pending, now._replace(pending=())
        bleu = self._evaluate(state, now.step, anyway=bool(pending))
        given_up = bleu is None
        kinds = self._kinds_due(before, now, bleu)
        if bleu is not None:
            now = now._replace(best_bleu=max(bleu, now.best_bleu))
        is_last = now.step >= self.intervals.steps
        # Read once: a signal between here and the end would leave without saving.
        stopping = given_up or not (
            is_last or pending or not self.stop.should_stop(now.step)
        )
        if stopping:
            kinds += ("stopped",)
        if given_up:
            now = now._replace(pending=kinds)
        if pending and not given_up:
            # What was interrupted gets the kinds that it would have had.
            earlier = tuple(kind for kind in pending if kind != "stopped")
            kinds = tuple(dict.fromkeys((*earlier, *kinds))) or pending
        if kinds and not (pending and given_up):
            now = self._save(state, now, kinds)
        return now, is_last or stopping

    def _evaluate(self, state: TrainState, step: int, *, anyway: bool) -> float | None:
        """Returns the BLEU of an evaluation; -1 for none, None if it was given up."""
        every = self.intervals.evaluate
        if not every:
            return -1.0
        is_due = step >= self.intervals.steps or step % every == 0
        if not (anyway or is_due):
            return -1.0
        self.meter.drain()
        with self.not_training(f"evaluating step {step:,}"):
            record = self.callbacks.evaluate(state, step)
        return None if record is None else float(record.get("bleu", -1.0))

    def _kinds_due(
        self, before: RunProgress, now: RunProgress, bleu: float | None
    ) -> tuple[str, ...]:
        """Says which checkpoints are due after the step from `before` to `now`."""
        every = self.intervals
        epochs, minutes = every.save_epochs, every.save_minutes
        is_late = now.minutes - now.saved_minutes >= minutes
        periodic = (
            (every.save_steps and now.step % every.save_steps == 0)
            or (minutes and self.callbacks.is_time(now.step, is_late))
            or (
                epochs
                and now.position.epoch // epochs > before.position.epoch // epochs
            )
        )
        due = {
            "periodic": bool(periodic),
            "best": bleu is not None and bleu > now.best_bleu,
            "final": bleu is not None and now.step >= every.steps,
        }
        return tuple(kind for kind, is_due in due.items() if is_due)

    def _save(
        self, state: TrainState, now: RunProgress, kinds: tuple[str, ...]
    ) -> RunProgress:
        self.meter.drain()
        now = self.meter.store_in(now)
        if "periodic" in kinds:
            now = now._replace(saved_minutes=now.minutes)
        with self.not_training(f"saving step {now.step:,}"):
            self.callbacks.save(state, now, kinds)
        return now


_SHOWN = (1, 20)
"""Steps of a process whose metrics are shown whatever the clock says: that it trains
at all, and enough to estimate the time left."""


class Step(Protocol):
    """A training step that may have to be compiled for the batch at hand."""

    def __call__(
        self, state: TrainState, batch: Batch
    ) -> tuple[TrainState, StepOutput]:
        """Makes a step on a batch that it is ready for."""

    def is_ready(self, batch: Batch) -> bool:
        """Tells whether `__call__` can begin at once."""

    def compile_for_batch(self, batch: Batch) -> None:
        """Compiles what the batch needs."""


def train(
    state: TrainState,
    batches: Iterable[tuple[DataPosition, Batch]],
    *,
    step: Step,
    progress: RunProgress,
    intervals: Intervals,
    callbacks: Callbacks,
    stop: StopRequest,
    deadlines: Watchdog,
) -> tuple[TrainState, RunProgress]:
    """Runs steps until `intervals.steps`, or until `stop` is requested.

    Args:
      state: after `progress.step` steps; its buffers are donated.
      batches: from `progress.position` on, each with the position after it.
      step: the compiled step; compiling is not training time.
      callbacks: what is called when it is due.
      deadlines: told of each step, and of what is done between two.

    Returns:
      The last state and where it stands. It has been saved.

    Raises:
      DivergedError: `callbacks.skip` says that too many steps made no update.
    """
    meter = StepMeter(progress, skip=callbacks.skip)
    turn = Turn(meter, intervals, callbacks, stop, deadlines)
    is_over, made = progress.completes(intervals.steps), 0
    if progress.pending:
        progress, is_over = turn.end_step(state, progress, progress)
    for position, batch in () if is_over else batches:
        if not step.is_ready(batch):
            meter.drain()
            with turn.not_training("compiling"):
                step.compile_for_batch(batch)
        before, number = progress, progress.step + 1
        with turn.start_step(number):
            state, output = step(state, batch)
        meter.add(output, step=number, place=before.position)
        deadlines.step_done(number)
        progress = progress._replace(
            step=number, position=position, minutes=meter.minutes
        )
        maybe_inject_fault(number)
        made += 1
        _report(meter, number, made=made, intervals=intervals, callbacks=callbacks)
        progress, is_over = turn.end_step(state, before, progress)
        if is_over:
            break
    return state, progress


def _report(
    meter: StepMeter,
    step: int,
    *,
    made: int,
    intervals: Intervals,
    callbacks: Callbacks,
) -> None:
    """Writes down and shows figures, whichever of the two is due.

    What is written down depends on the step alone, so that a resumed run writes the
    same records; what is shown depends on the clock and on the steps `step_done` here.
    """
    last = step == intervals.steps
    to_log = last or step == 1 or step % intervals.log == 0
    to_show = last or made in _SHOWN
    to_show |= time.perf_counter() - meter.shown >= intervals.show_seconds
    if not (to_log or to_show):
        return
    record = meter.make_record(step)
    if record and to_log:
        callbacks.log(record)
    if record and to_show:
        callbacks.show(record)
    if to_log:
        meter.close_window()
    if to_show:
        meter.shown = time.perf_counter()
