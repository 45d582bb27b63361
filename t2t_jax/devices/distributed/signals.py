"""Handlers of the stop signals, and a thread that sees signals during foreign code.

Python runs signal handlers in the main thread between two bytecode instructions, and
therefore not while that thread compiles or waits for other processes in C++.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeAlias

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that request a process to stop."""

Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None

_CLOSE = b"\0"
_EXIT_CODE = 75  # of `errors.StoppedError`, whose import takes time


def set_handlers(
    handler: Handler, *, keep_ignored: Sequence[int] = STOP_SIGNALS
) -> None:
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
    watcher = threading.Thread(
        target=_watch, args=(reader, on_stop, seconds, on_expiry), daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(writer, _CLOSE)
        watcher.join()
        os.close(reader)
        os.close(writer)


def _watch(
    reader: int,
    on_stop: Callable[[str], None],
    seconds: float | None,
    on_expiry: Callable[[], None],
) -> None:
    while True:
        if not select.select([reader], [], [], seconds)[0]:
            seconds = None
            on_expiry()
            continue
        byte = os.read(reader, 1)
        if byte == _CLOSE:
            return
        if byte[0] in STOP_SIGNALS:
            on_stop(signal.Signals(byte[0]).name)
