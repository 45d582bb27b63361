"""Signals until `main` handles them: they end the process at once, in one line.

The imports of a start take a tenth of a second or more, in which Python would answer
Ctrl-C with a traceback. Nothing has begun then, so there is nothing to save.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that stop a program."""

_STOPPED = 75  # as in `errors.StoppedError`, which costs imports


def leave_on_signals() -> None:
    """Lets signals end this process with the exit code of a stop.

    Signals that are ignored, as those of a job in the background are, stay ignored.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    # What has come while another program was executed is delivered now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def hold_signals() -> None:
    """Holds signals back until `leave_on_signals`, also over an `exec`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _leave(number: int, frame: FrameType | None) -> None:
    name = signal.Signals(number).name
    os.write(2, f"error: Stopped by {name}. Give the same command again.\n".encode())
    os._exit(_STOPPED)
