"""No silent hang: a run that makes no step for too long shows its stacks and ends."""

from __future__ import annotations

import faulthandler
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

# A step is begun before the one before it has ended, so it is the third that tells of
# the first; and until then other processes may still be compiling.
_UNSETTLED = 3
_LATE = 60.0
_REARM_SECONDS = 5.0


class Watchdog:
    """Watches from a thread of its own whether a run goes on; a context manager.

    Where that thread cannot run either, since foreign code holds the interpreter,
    `faulthandler` ends the process a minute later, with exit code 1.

    Args:
      step: seconds that a step may take, the wait for its batch included; 0 is no end.
      pause: likewise for what is between steps, and for the first three after it.
      expired: called when a deadline is over, with what the run was doing; it is to
        end the process.
    """

    def __init__(self, *, step: float, pause: float, expired: Callable[[str], object]):
        self._step, self._pause, self._expired = step, pause, expired
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._armed = 0.0
        self._unsettled = _UNSETTLED
        self._due: tuple[float, float, str] | None = None

    def __enter__(self) -> Watchdog:
        self._arm(self._pause, "waiting for the first step")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def step_done(self, step: int) -> None:
        """Begins the time for the next step; called after each one."""
        self._unsettled = max(0, self._unsettled - 1)
        seconds = self._pause if self._unsettled else self._step
        self._arm(seconds, f"waiting for step {step + 1:,}")

    @contextmanager
    def extended(self, what: str) -> Iterator[None]:
        """Gives time for something else than steps, and for the first ones after it.

        Args:
          what: the run is doing meanwhile.
        """
        self.begin(what)
        yield
        self.begin(f"waiting for a step after {what}")

    def begin(self, what: str) -> None:
        """Begins the time for something else than a step.

        Args:
          what: the run is doing from here on.
        """
        self._unsettled = _UNSETTLED
        self._arm(self._pause, what)

    def reset(self) -> None:
        """Begins the time anew for what is being done, since some of it is done."""
        due = self._due
        if due is not None:
            self._arm(due[1], due[2])

    def _arm(self, seconds: float, what: str) -> None:
        due = time.monotonic() + seconds
        self._due = (due, seconds, what) if seconds else None
        if not seconds:
            faulthandler.cancel_dump_traceback_later()
            self._armed = 0.0
        # It starts a thread each time, so not for each of many short steps.
        elif abs(due - self._armed) > _REARM_SECONDS:
            faulthandler.dump_traceback_later(seconds + _LATE, exit=True)
            self._armed = due

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            due = self._due
            if due is not None and time.monotonic() > due[0]:
                self._expired(f"{due[2]}, for {due[1]:g} s")
                return
