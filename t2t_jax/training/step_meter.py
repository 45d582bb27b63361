"""What training has amounted to since the last record, and how long it took."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import jax

from t2t_jax.training.metrics import Sums, summarise, total
from t2t_jax.training.progress import Record, RunProgress
from t2t_jax.training.step import StepOutput
from t2t_jax.types import DataPosition


class _Made(NamedTuple):
    """A step that has been begun: its number, where its batch stands, its output."""

    step: int
    place: DataPosition
    output: StepOutput


class StepMeter:
    """Adds up the outputs of steps, and the time they took.

    A step that made no update enters no figure; it is counted, and handed to `skip`.

    Args:
      progress: where the run stands; its window, counts and minutes are gone on with.
      skip: called with the record of each step without an update, in order.

    Attributes:
      shown: when figures were last shown, on the clock of `time.perf_counter`.
    """

    def __init__(self, progress: RunProgress, *, skip: Callable[[Record], None]):
        self._pending: deque[_Made] = deque()
        self._skip = skip
        self._window = progress.window
        self._gradient_norm = progress.gradient_norm
        self._skipped = progress.skipped
        self._skipped_in_a_row = progress.skipped_in_a_row
        self._place = progress.position
        self._timed_tokens = 0.0
        self._timed_seconds = 0.0
        self._seconds = 60 * progress.minutes
        self._started = time.perf_counter()
        self.shown = self._started

    @property
    def minutes(self) -> float:
        """Minutes of training, up to now."""
        return (self._seconds + time.perf_counter() - self._started) / 60

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keeps what is not a step out of the training time."""
        self._lap()
        yield
        self._started = time.perf_counter()

    def add(self, output: StepOutput, *, step: int, place: DataPosition) -> None:
        """Takes what a step will have reported when it is done.

        Args:
          step: its number, from 1.
          place: of the batch that it reads.
        """
        # Two steps in flight hide the host's work; more would only hold batches, and
        # let a run that has diverged go on for longer.
        while len(self._pending) > 1:
            self._take(self._pending.popleft())
        self._pending.append(_Made(step, place, output))

    def drain(self) -> None:
        """Waits for the steps made so far, and adds them to the window."""
        while self._pending:
            self._take(self._pending.popleft())

    def store_in(self, progress: RunProgress) -> RunProgress:
        """Writes the window and the counts of the steps settled into a progress."""
        return progress._replace(
            window=self._window,
            gradient_norm=self._gradient_norm,
            skipped=self._skipped,
            skipped_in_a_row=self._skipped_in_a_row,
        )

    def make_record(self, step: int) -> Record:
        """Makes the record of the steps since the last one that was closed.

        Returns:
          The record; an empty one where none of these steps made an update.
        """
        self.drain()
        self._lap()
        if not self._window:
            return {}
        record: Record = {"step": step, "kind": "train"}
        record.update(summarise(Sums(*self._window)))
        record["target_tokens"] = int(Sums(*self._window).target_tokens)
        record["gradient_norm"] = self._gradient_norm
        # A clock may stand still: those of virtual machines and of tests do.
        seconds = max(self._timed_seconds, 1e-9)
        record["target_tokens_per_second"] = self._timed_tokens / seconds
        record["skipped"] = self._skipped
        return {**record, **self._place._asdict()}

    def close_window(self) -> None:
        """Lets the next record begin after the steps made so far."""
        self._window, self._timed_tokens, self._timed_seconds = (), 0.0, 0.0

    def _take(self, made: _Made) -> None:
        """Waits for a step; counts it in, or counts it as one without an update."""
        sums, gradient_norm, applied = jax.device_get(made.output)
        self._place = made.place
        tokens = float(sums.target_tokens)
        if not applied:
            self._skipped += 1
            self._skipped_in_a_row += 1
            loss = float(sums.loss) / tokens if tokens else math.nan
            self._skip(self._skipped_record(made.step, loss, float(gradient_norm)))
            return
        self._skipped_in_a_row = 0
        self._gradient_norm = float(gradient_norm)
        before = [Sums(*self._window)] if self._window else []
        self._window = tuple(map(float, total([*before, sums])))
        self._timed_tokens += tokens

    def _skipped_record(self, step: int, loss: float, gradient_norm: float) -> Record:
        """Tells of a step without an update; JSON knows no NaN, and has null for it."""
        return {
            "step": step,
            "kind": "skipped",
            "loss": loss if math.isfinite(loss) else None,
            "gradient_norm": gradient_norm if math.isfinite(gradient_norm) else None,
            "in_a_row": self._skipped_in_a_row,
            **self._place._asdict(),
        }

    def _lap(self) -> None:
        now = time.perf_counter()
        self._seconds += now - self._started
        self._timed_seconds += now - self._started
        self._started = now
