"""Handles signals before `main` does: exits at once with a one-line message.

During the imports at startup (a tenth of a second or more) Python would answer Ctrl-C
with a traceback. There is nothing to save yet.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that stop the program."""

_EXIT_CODE = 75  # of `errors.StoppedError`, whose import takes time


def install_early_handlers() -> None:
    """Makes the stop signals exit this process at once with the code of a stop.

    Ignored signals stay ignored (background jobs), and blocked ones are unblocked.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit)
    # Delivers what arrived during an exec.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def block_signals() -> None:
    """Blocks the stop signals until `install_early_handlers`, also across an exec."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _exit(number: int, frame: FrameType | None) -> None:
    name = signal.Signals(number).name
    os.write(2, f"error: Stopped by {name}. Rerun the same command.\n".encode())
    os._exit(_EXIT_CODE)
