"""What training has amounted to since the last record, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

from t2t_jax.training.guard import require_finite
from t2t_jax.training.metrics import Sums, summarise, total
from t2t_jax.training.step import StepOutput


class Meter:
    """Adds up the outputs of steps, and the time they took.

    Args:
      window: the `Sums` of earlier steps that belong to the next record; () for none.
      minutes: of training before this.

    Attributes:
      window: the `Sums` since the last record, as far as they have been settled.
      shown: when figures were last shown, on the clock of `time.perf_counter`.
    """

    def __init__(self, *, window: tuple[float, ...], minutes: float):
        self._pending: list[StepOutput] = []
        self.window = window
        self._gradient_norm = 0.0
        self._timed_tokens = 0.0
        self._timed_seconds = 0.0
        self._seconds = 60 * minutes
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

    def add(self, output: StepOutput) -> None:
        """Takes what a step will have reported when it is done."""
        # Two steps in flight hide the host's work; more would only hold batches.
        if len(self._pending) > 1:
            jax.block_until_ready(self._pending[-2])
        self._pending.append(output)

    def settle(self, step: int) -> None:
        """Waits for the steps made so far, and adds them to the window.

        Raises:
          DivergedError: the loss or gradient of one was not finite.
        """
        for output in jax.device_get(self._pending):
            self._gradient_norm = float(output.gradient_norm)
            require_finite(
                step,
                loss=float(output.sums.loss),
                gradient_norm=self._gradient_norm,
            )
            before = [Sums(*self.window)] if self.window else []
            self.window = tuple(map(float, total([*before, output.sums])))
            self._timed_tokens += float(output.sums.target_tokens)
        self._pending = []

    def read(self, step: int) -> dict[str, Any]:
        """Makes the record of the steps since the last one that was closed."""
        self.settle(step)
        self._lap()
        record: dict[str, Any] = {"step": step, "kind": "train"}
        record.update(summarise(Sums(*self.window)))
        record["target_tokens"] = int(Sums(*self.window).target_tokens)
        record["gradient_norm"] = self._gradient_norm
        record["target_tokens_per_second"] = self._timed_tokens / self._timed_seconds
        return record

    def close_window(self) -> None:
        """Lets the next record begin after the steps made so far."""
        self.window, self._timed_tokens, self._timed_seconds = (), 0.0, 0.0

    def _lap(self) -> None:
        now = time.perf_counter()
        self._seconds += now - self._started
        self._timed_seconds += now - self._started
        self._started = now
