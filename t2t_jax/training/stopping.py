"""Stop requests by signals, and the watchdog that ends a run that is stuck."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import NoReturn

from t2t_jax.devices.distributed.processes import current_processes
from t2t_jax.devices.distributed.signals import (
    handling,
    preemption_sync,
    watch_signals,
    write_stderr,
)
from t2t_jax.errors import StoppedError

_STUCK_EXIT_CODE = 70
_LINES_OF_BAR = "\n" * 3

# Steps are dispatched ahead, so the third waits for the first; and until then other
# processes may still be compiling.
_WARMUP_STEPS = 3
_FAULTHANDLER_GRACE = 60.0
_REARM_SECONDS = 5.0


class StopRequest:
    """Turns the first signal into a stop request; a second one exits at once.

    A context manager for the main thread. While it is open, SIGINT (Ctrl-C), SIGTERM
    and SIGUSR1 set `requested`, and the training loop saves and ends at its next step.

    Attributes:
      requested: name of the signal, or "".
    """

    def __init__(self) -> None:
        self.requested = ""
        self._num_signals, self._open = 0, ExitStack()

    def __enter__(self) -> StopRequest:
        self._open.enter_context(handling(self._handle))
        # A second signal must end the process even during a compilation.
        self._open.enter_context(watch_signals(self._on_wakeup))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def should_stop(self, step: int) -> bool:
        """Returns whether to stop after this step; call it once a step."""
        return bool(self.requested)

    def stop_requested(self) -> bool:
        """Returns whether to cancel long operations, to stop soon."""
        return bool(self.requested)

    def _on_wakeup(self, name: str) -> None:
        self._num_signals += 1
        if self._num_signals > 1:  # Python's handler may be blocked by foreign code.
            _exit_at_once(name)
        how = "saving a checkpoint, then stopping (again to exit at once)"
        # A progress bar erases its lines, of which the cursor is on the last.
        write_stderr(f"\n{name}: {how}{_LINES_OF_BAR * os.isatty(2)}")

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            _exit_at_once(signal.Signals(number).name)
        self.requested = signal.Signals(number).name


def _exit_at_once(name: str) -> NoReturn:
    try:
        # A full pipe or a stopped terminal would let the write wait for ever.
        if select.select([], [2], [], 0)[1]:
            write_stderr(f"\n{name} again: exiting without saving.")
    finally:
        os._exit(StoppedError.exit_code)


class InterruptRequest(StopRequest):
    """Turns the first Ctrl-C into a stop request, for training called from Python.

    A context manager for any thread. In the main thread Ctrl-C (SIGINT) sets
    `requested`, and a second one raises KeyboardInterrupt at once; the previous handler
    is restored on exit. In other threads, where Python cannot set handlers, and
    where SIGINT is ignored, it does nothing. Other signals are not handled.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__()
        self._log = log

    def __enter__(self) -> InterruptRequest:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and callable(signal.getsignal(signal.SIGINT)):
            self._open.enter_context(handling(self._handle, [signal.SIGINT]))
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number).name
        self._log("Interrupted: saving a checkpoint, then stopping (again to stop now)")


class SharedStopRequest(StopRequest):
    """Stops several processes after the same step, whichever received the signal."""

    def __enter__(self) -> SharedStopRequest:
        self._request_stop = self._open.enter_context(preemption_sync())
        super().__enter__()
        return self

    def should_stop(self, step: int) -> bool:
        """Returns whether all processes stop after this step; call it on all."""
        from jax.experimental import multihost_utils

        return multihost_utils.reached_preemption_sync_point(step)

    def stop_requested(self) -> bool:
        """Returns whether a process was asked to stop, as far as known here."""
        return bool(self.requested) or current_processes().stop_was_broadcast

    def _handle(self, number: int, frame: FrameType | None) -> None:
        super()._handle(number, frame)
        current_processes().broadcast_stop()
        self._request_stop()


@contextmanager
def exit_on_signals(
    clear_up: Callable[[], None] = lambda: None,
    *,
    advice: str = "Rerun the same command.",
) -> Iterator[None]:
    """Ends the process on a signal, before there is anything to save.

    For the main thread, before the first step: Python's handlers do not run during
    the minutes in which a large model compiles.

    Args:
      clear_up: called before the exit, in another thread.
    """

    def exit_now(name: str) -> None:
        text = f"Stopped by {name}. {advice}"
        write_stderr(f"{current_processes().log_prefix}error: {text}")
        clear_up()
        current_processes().abort_all(StoppedError.exit_code, text)

    # In this order a signal is handled at any moment.
    with watch_signals(exit_now), handling(lambda number, frame: None):
        yield


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Raises KeyboardInterrupt, with the signal's name, on a signal.

    For the main thread, which sees a signal when foreign code returns. It overrides
    `exit_on_signals` while it is open.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    with watch_signals(lambda name: None), handling(interrupt):
        yield


def abort_stuck_run(what: str) -> NoReturn:
    """Prints the stacks of all threads, and ends the run with exit code 70."""
    text = (
        f"This run is stuck: {what}. Raise config.training.step_timeout or "
        "config.training.pause_timeout if it only needs more time."
    )
    write_stderr(f"{current_processes().log_prefix}FATAL {text}")
    faulthandler.dump_traceback(all_threads=True)
    current_processes().abort_all(_STUCK_EXIT_CODE, text, stuck=True)


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
        self._armed, self._warmup_left = 0.0, _WARMUP_STEPS
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
        if (due := self._due) is not None:
            self._arm(*due[1:])

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
            if (due := self._due) is not None and time.monotonic() > due[0]:
                self._on_timeout(f"{due[2]}, for {due[1]:g} s")
                return
