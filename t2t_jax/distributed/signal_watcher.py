"""Handles stop signals in a thread, while the main thread is in foreign code.

Python runs signal handlers in the main thread between two bytecode instructions, and
therefore not while that thread compiles or waits for other processes in C++.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that request a process to stop."""

_CLOSE = b"\0"


@contextmanager
def watch_signals(
    on_stop: Callable[[str], None],
    *,
    seconds: float | None = None,
    on_expiry: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Calls back from a separate thread when a signal of `STOP_SIGNALS` arrives.

    Use it in the main thread. Python's own handlers run too, when they can.
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


def write_stderr(text: str) -> None:
    """Writes a line to stderr without Python's buffers and locks; ignores errors."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())


def _watch(
    reader: int,
    on_stop: Callable[[str], None],
    seconds: float | None,
    on_expiry: Callable[[], None] | None,
) -> None:
    while True:
        if not select.select([reader], [], [], seconds)[0]:
            seconds = None
            if on_expiry is not None:
                on_expiry()
            continue
        byte = os.read(reader, 1)
        if byte == _CLOSE:
            return
        if byte[0] in STOP_SIGNALS:
            on_stop(signal.Signals(byte[0]).name)
