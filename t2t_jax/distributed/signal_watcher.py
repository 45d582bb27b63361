"""Signals that are seen at once, whatever the main thread is doing.

Python runs the handler of a signal in its main thread, between two instructions of its
own. While that thread is in foreign code, a compiler or a wait for other processes,
nothing happens. So a second thread is told too.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that ask a process to stop."""

_OVER = b"\0"


@contextmanager
def watch_signals(
    on_stop: Callable[[str], None],
    *,
    seconds: float | None = None,
    on_expiry: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Calls back from a thread of its own when a signal of `STOP_SIGNALS` comes.

    To be used in the main thread. Python's handlers run too, when they can.

    Args:
      on_stop: gets the signal's name, once for each that comes.
      seconds: how long to wait for the first of them; None means for ever.
      on_expiry: called when that time is over.
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
        os.write(writer, _OVER)
        watcher.join()
        os.close(reader)
        os.close(writer)


def write_stderr(text: str) -> None:
    """Writes a line to stderr, even where the main thread is in the middle of one.

    Where it cannot be written, what is done next is done all the same.
    """
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
        came = os.read(reader, 1)
        if came == _OVER:
            return
        if came[0] in STOP_SIGNALS:
            on_stop(signal.Signals(came[0]).name)
