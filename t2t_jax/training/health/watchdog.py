"""Ends a run that makes no progress, with the stacks of its threads."""

from __future__ import annotations

import faulthandler
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Steps are dispatched ahead, so the third waits for the first; and until then other
# processes may still be compiling.
_WARMUP_STEPS = 3
_FAULTHANDLER_GRACE = 60.0
_REARM_SECONDS = 5.0


class Watchdog:
    """Watches a run from a thread; a context manager.

    Where that thread cannot run either, since foreign code holds the interpreter,
    `faulthandler` ends the process a minute later, with exit code 1.

    Args:
      step: seconds that a step may take, with the wait for its batch; 0 for no limit.
      pause: the same between steps, and for the first three after a pause.
      on_timeout: called with the current activity; it must end the process.
    """

    def __init__(
        self, *, step: float, pause: float, on_timeout: Callable[[str], object]
    ):
        self._step, self._pause, self._on_timeout = step, pause, on_timeout
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._armed = 0.0
        self._warmup_left = _WARMUP_STEPS
        self._due: tuple[float, float, str] | None = None

    def __enter__(self) -> Watchdog:
        self._arm(self._pause, "waiting for the first step")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def step_done(self, step: int) -> None:
        """Restarts the timer for the next step; call it after each one."""
        self._warmup_left = max(0, self._warmup_left - 1)
        seconds = self._pause if self._warmup_left else self._step
        self._arm(seconds, f"waiting for step {step + 1:,}")

    @contextmanager
    def extended(self, what: str) -> Iterator[None]:
        """Sets the timer to `pause` for an activity between steps."""
        self.begin(what)
        yield
        self.begin(f"waiting for a step after {what}")

    def begin(self, what: str) -> None:
        """Restarts the timer for another activity than a step."""
        self._warmup_left = _WARMUP_STEPS
        self._arm(self._pause, what)

    def reset(self) -> None:
        """Restarts the timer of the current activity."""
        due = self._due
        if due is not None:
            self._arm(due[1], due[2])

    def _arm(self, seconds: float, what: str) -> None:
        due = time.monotonic() + seconds
        self._due = (due, seconds, what) if seconds else None
        if not seconds:
            faulthandler.cancel_dump_traceback_later()
            self._armed = 0.0
        # It starts a thread each time, so not for every short step.
        elif abs(due - self._armed) > _REARM_SECONDS:
            faulthandler.dump_traceback_later(seconds + _FAULTHANDLER_GRACE, exit=True)
            self._armed = due

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            due = self._due
            if due is not None and time.monotonic() > due[0]:
                self._on_timeout(f"{due[2]}, for {due[1]:g} s")
                return
