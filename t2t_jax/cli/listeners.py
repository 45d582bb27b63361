"""Where people are told how a run goes: stderr and logs, whose failing ends nothing.

The reader of a pipe goes away, a terminal is closed, the disk that a log lies on is
full: what is said then is lost, and no run is lost with it, nor its exit code.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO

_STDERR = 2


class _Unfailing(io.FileIO):
    """Drops what cannot be written, and tries the next again."""

    def write(self, data: Any, /) -> int:
        try:
            # None where a pipe is full whose reader is not waited for.
            return super().write(data) or len(data)
        except OSError:
            return len(data)

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # Some file systems find no room only now.
            return


def open_log(path: Path) -> TextIO:
    """Opens a file to add lines to, each of which is written at once or dropped.

    Args:
      path: the file; its directory exists.

    Raises:
      OSError: it cannot be opened.
    """
    return _lines_to(_Unfailing(path, "a"))


def guard_stderr() -> None:
    """Lets `sys.stderr` drop what it cannot write, for the rest of this process.

    Where stderr is closed, nothing else may get its number: what is written there
    without Python would go into a checkpoint.
    """
    if sys.stderr is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDERR)
    sys.stderr = _lines_to(_Unfailing(_STDERR, "w", closefd=False))


def say(text: str) -> None:
    """Tells people something, on stderr and at once.

    Args:
      text: a line, or several.
    """
    print(text, file=sys.stderr, flush=True)


def _lines_to(file: io.RawIOBase) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )
