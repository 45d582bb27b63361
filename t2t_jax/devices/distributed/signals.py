"""Stop signals: their handlers, a thread that sees them, and the step to stop after.

Python runs signal handlers in the main thread between two bytecode instructions, and
therefore not while that thread compiles or waits for other processes in C++.

Several processes agree on a step by JAX's preemption service, whose only trigger is its
own SIGTERM handler, installed from C. With that handler in place Python's would never
run, and a second signal could not end the process. So Python keeps its handlers, and
the first signal is forwarded to JAX's.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TypeAlias

from t2t_jax import jax_internals

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that request a process to stop."""

Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None

_CLOSE = b"\0"
_EXIT_CODE = 75  # of `errors.StoppedError`, whose import takes time
# More than the size of `struct sigaction` on any system.
_SIGACTION_BYTES = 512


def set_handlers(handler: Handler, keep_ignored: Sequence[int] = STOP_SIGNALS) -> None:
    """Sets the handler of the stop signals.

    Args:
      keep_ignored: those that stay ignored if they are, as in background jobs.
    """
    for number in STOP_SIGNALS:
        is_ignored = signal.getsignal(number) is signal.SIG_IGN
        if not (is_ignored and number in keep_ignored):
            signal.signal(number, handler)


@contextmanager
def handling(handler: Handler, numbers: Sequence[int] = STOP_SIGNALS) -> Iterator[None]:
    """Sets the handler of signals, and restores the previous ones at the end."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def install_early_handlers() -> None:
    """Makes the stop signals exit this process at once with the code of a stop.

    During the imports at startup (a tenth of a second or more) Python would answer
    Ctrl-C with a traceback. There is nothing to save yet. Blocked signals are
    unblocked.
    """
    set_handlers(_exit)
    # Delivers what arrived during an exec.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def block_signals() -> None:
    """Blocks the stop signals until `install_early_handlers`, also across an exec."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _exit(number: int, frame: FrameType | None) -> None:
    name = signal.Signals(number).name
    write_stderr(f"error: Stopped by {name}. Rerun the same command.")
    os._exit(_EXIT_CODE)


def write_stderr(text: str) -> None:
    """Writes a line to stderr without Python's buffers and locks; ignores errors."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())


def hard_exit(code: int) -> NoReturn:
    """Ends this process at once, without cleanup and without waiting for threads."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # A closed pipe.
            stream.flush()
    os._exit(code)


@contextmanager
def watch_signals(
    on_stop: Callable[[str], None],
    *,
    seconds: float | None = None,
    on_expiry: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Calls back from a separate thread when a signal of `STOP_SIGNALS` arrives.

    Use it in the main thread. Python's own handlers run too, when they can.

    Args:
      on_stop: called with the name of the signal.
      seconds: without a signal, after which `on_expiry` is called, once.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch() -> None:
        left = seconds
        while True:
            if not select.select([reader], [], [], left)[0]:
                left = None
                on_expiry()
                continue
            if (byte := os.read(reader, 1)) == _CLOSE:
                return
            if byte[0] in STOP_SIGNALS:
                on_stop(signal.Signals(byte[0]).name)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(writer, _CLOSE)
        watcher.join()
        os.close(reader)
        os.close(writer)


@contextmanager
def preemption_sync() -> Iterator[Callable[[], None]]:
    """Starts JAX's preemption service without its signal handler.

    Collective: enter it on every process, in the main thread.

    Yields:
      A function that requests a stop; call it in the main thread. At some later step
      `multihost_utils.reached_preemption_sync_point` is then true on every process.
    """
    import jax

    jax.config.update("jax_enable_preemption_service", True)
    python_handler = signal.getsignal(signal.SIGTERM)
    jax_internals.start_preemption_service()
    action = exchange_action(signal.SIGTERM)

    def request_stop() -> None:
        current = exchange_action(signal.SIGTERM, action)
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            exchange_action(signal.SIGTERM, current)

    with handling(python_handler, [signal.SIGTERM]):
        try:
            yield request_stop
        finally:
            jax_internals.stop_preemption_service()


def exchange_action(number: int, action: Any = None) -> Any:
    """Returns the action of a signal, of Python or C, after setting another, if any."""
    import ctypes

    before = ctypes.create_string_buffer(_SIGACTION_BYTES)
    if ctypes.CDLL(None, use_errno=True).sigaction(number, action, before):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return before
