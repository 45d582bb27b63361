"""What may interrupt a run: signals, and a standstill."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import NoReturn

from t2t_jax.distributed.preemption import PreemptionSync, preemption_notice
from t2t_jax.distributed.processes import current_processes
from t2t_jax.distributed.signal_watcher import STOP_SIGNALS, watch_signals, write_stderr
from t2t_jax.errors import StoppedError

_STUCK = 70


class StopRequest:
    """Turns the first signal into a wish to stop; a second one leaves at once.

    A context manager for the main thread. While it is open, SIGINT (Ctrl-C), SIGTERM
    and SIGUSR1 set `requested`, and the training loop saves and ends at its next step.

    Attributes:
      requested: name of the signal that came, or "".
    """

    def __init__(self) -> None:
        self.requested = ""
        self._seen = 0
        self._open = ExitStack()

    def __enter__(self) -> StopRequest:
        self._open.enter_context(_handling(self._handle))
        # Leaving at once must not wait until a compiler has done its work.
        self._open.enter_context(watch_signals(self._see))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def should_stop(self, step: int) -> bool:
        """Tells, once a step, whether to stop after this one."""
        return bool(self.requested)

    def stop_requested(self) -> bool:
        """Tells whether what takes long should be given up, to stop soon."""
        return bool(self.requested)

    def _see(self, name: str) -> None:
        self._seen += 1
        if self._seen > 1:  # The handler may have to wait for foreign code.
            os._exit(StoppedError.exit_code)
        write_stderr(
            f"\n{name}: saving a checkpoint, then stopping (again to leave at once)"
        )

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            os._exit(StoppedError.exit_code)
        self.requested = signal.Signals(number).name


class InterruptRequest(StopRequest):
    """Turns the first Ctrl-C into a request to stop, where Python code has called.

    A context manager for any thread. In the main thread Ctrl-C (SIGINT) sets
    `requested`, and a second one raises KeyboardInterrupt at once; the handler that was
    there is put back. In other threads, where Python lets nobody set a handler, and
    where SIGINT is ignored, it does nothing. No other signal is touched.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def __enter__(self) -> InterruptRequest:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and callable(before := signal.getsignal(signal.SIGINT)):
            signal.signal(signal.SIGINT, self._handle)
            self._open.callback(signal.signal, signal.SIGINT, before)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number).name
        self._say("Interrupted: saving a checkpoint, then stopping (again to stop now)")


class SharedStopRequest(StopRequest):
    """Stops several processes after the same step, whichever of them got the signal.

    Each of them enters this together with its training loop.
    """

    _notice: PreemptionSync

    def __enter__(self) -> SharedStopRequest:
        self._notice = self._open.enter_context(preemption_notice())
        super().__enter__()
        return self

    def should_stop(self, step: int) -> bool:
        """Tells whether all processes stop after this step; each asks at every one."""
        return self._notice.should_stop(step)

    def stop_requested(self) -> bool:
        """Tells whether any process has been asked to stop, as far as is known here."""
        return bool(self.requested) or current_processes().stop_was_broadcast

    def _handle(self, number: int, frame: FrameType | None) -> None:
        super()._handle(number, frame)
        current_processes().broadcast_stop()
        self._notice.give()


@contextmanager
def exit_on_signals(
    clear_up: Callable[[], None] = lambda: None,
    *,
    advice: str = "Give the same command again.",
) -> Iterator[None]:
    """Ends the process on a signal, whatever it does, since nothing would be lost.

    For the main thread, before the first step: compiling a large model takes minutes,
    in which no handler of Python's own runs.

    Args:
      clear_up: called before, in another thread.
    """

    def leave(name: str) -> None:
        text = f"Stopped by {name}. {advice}"
        write_stderr(f"{current_processes().log_prefix}error: {text}")
        clear_up()
        current_processes().abort_all(StoppedError.exit_code, text)

    # In this order there is no moment at which a signal reaches nobody.
    with watch_signals(leave), _handling(lambda number, frame: None):
        yield


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Turns signals into a KeyboardInterrupt that bears their name.

    For a main thread that does nothing but wait: foreign code would let no exception
    through. Inside `exit_on_signals` nothing ends at once while this is open.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    with watch_signals(lambda name: None), _handling(interrupt):
        yield


def abort_stuck_run(what: str) -> NoReturn:
    """Shows what every thread of this process is doing, and ends the run with 70.

    Args:
      what: the run was doing, and for how long.
    """
    text = (
        f"This run is stuck: {what}. Raise config.training.step_timeout or "
        "config.training.pause_timeout if that is not too long."
    )
    write_stderr(f"{current_processes().log_prefix}FATAL {text}")
    faulthandler.dump_traceback(all_threads=True)
    current_processes().abort_all(_STUCK, text, stuck=True)


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Gives the signals that stop a run to a handler, and back afterwards."""
    before = {number: signal.signal(number, handler) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
