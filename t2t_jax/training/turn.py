"""What surrounds a training step: a profile, an evaluation, a checkpoint, the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from t2t_jax.parallelism.distributed import joined
from t2t_jax.training.deadlines import Deadlines
from t2t_jax.training.guard import StopRequest
from t2t_jax.training.meter import Meter
from t2t_jax.training.profile import Profile
from t2t_jax.training.progress import Intervals, Progress, Record
from t2t_jax.training.state import TrainState


class Callbacks(Protocol):
    """What the loop calls.

    Attributes:
      profile: of some of the steps, or of none.
    """

    profile: Profile

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
        self, state: TrainState, progress: Progress, kinds: tuple[str, ...]
    ) -> None:
        """Writes a checkpoint, in the place of one of this step that is there.

        Args:
          state: after `progress.step` steps.
          progress: where the run stands.
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

    meter: Meter
    intervals: Intervals
    callbacks: Callbacks
    stop: StopRequest
    deadlines: Deadlines

    @contextmanager
    def paused(self, what: str) -> Iterator[None]:
        """Keeps what is not training out of its time, and gives it a limit."""
        with self.meter.paused(), self.deadlines.paused(what):
            yield

    def opening(self, step: int) -> AbstractContextManager[object]:
        """Begins the profile, if it is due.

        Args:
          step: to be made next.

        Returns:
          What to make the step in.
        """
        profile = self.callbacks.profile
        if profile.begins_with(step):
            self.meter.settle()
            with self.paused("beginning a profile"):
                profile.begin(step)
        return profile.named(step)

    def close(
        self, state: TrainState, before: Progress, now: Progress
    ) -> tuple[Progress, bool]:
        """Profiles, evaluates and saves what is due, or what is still pending.

        Args:
          state: after the step.
          before: where the run stood before it.
          now: where it stands.

        Returns:
          Where the run stands, with what is written in its checkpoint if there is
          one; and whether it is over.
        """
        # Who is to stop saves first: alone, for several have to write at the same step.
        in_haste = joined().count == 1 and self.stop.is_wanted()
        if self.callbacks.profile.ends_with(now.step) and not in_haste:
            self.meter.settle()
            with self.paused("writing a profile"):
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
            is_last or pending or not self.stop.reached(now.step)
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
        self.meter.settle()
        with self.paused(f"evaluating step {step:,}"):
            record = self.callbacks.evaluate(state, step)
        return None if record is None else float(record.get("bleu", -1.0))

    def _kinds_due(
        self, before: Progress, now: Progress, bleu: float | None
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
        self, state: TrainState, now: Progress, kinds: tuple[str, ...]
    ) -> Progress:
        self.meter.settle()
        now = self.meter.noted(now)
        if "periodic" in kinds:
            now = now._replace(saved_minutes=now.minutes)
        with self.paused(f"saving step {now.step:,}"):
            self.callbacks.save(state, now, kinds)
        return now
