"""Where people are told how a run goes: stderr and logs, whose failing ends nothing.

The reader of a pipe goes away, a terminal is closed, the disk that a log lies on is
full: what is said then is lost, and no run is lost with it, nor its exit code.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

_STDERR = 2
_NOTICE = (
    "warning: the encoding of this terminal ({}) does not have some characters, which "
    "are written as escapes. Set LC_ALL=C.UTF-8 and PYTHONUTF8=1 if the terminal "
    "shows UTF-8.\n"
)
_said: list[str] = []
_ESCAPES = "t2t_jax.escapes"

BYTES = "t2t_jax.bytes"
"""Encodes names of files as the bytes that they are; an `errors` of `str.encode`."""


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


def make_stderr_robust() -> None:
    """Lets `sys.stderr` drop what it cannot write, for the rest of this process.

    Files and pipes get UTF-8, whatever the locale; a terminal its own encoding, with
    escapes for what that does not have. Where stderr is closed, nothing else may get
    its number: what is written there without Python would go into a checkpoint.
    """
    encoding = "utf-8"
    if sys.stderr is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDERR)
    elif sys.stderr.isatty():
        encoding = sys.stderr.encoding
    errors = _errors_for(encoding)
    unfailing = _Unfailing(_STDERR, "w", closefd=False)
    sys.stderr = _lines_to(unfailing, encoding=encoding, errors=errors)


def guard_stdout() -> None:
    """Lets `sys.stdout` write any text, for the rest of this process.

    Files and pipes get UTF-8, whatever the locale and PYTHONIOENCODING say, and names
    of files as the bytes that they are. A terminal gets its own encoding, with escapes
    for what that does not have.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors=_errors_for(encoding))


def is_utf8(encoding: str) -> bool:
    """Returns whether a name, such as UTF8, is that of UTF-8."""
    return codecs.lookup(encoding).name == "utf-8"


def _errors_for(encoding: str) -> str:
    return BYTES if is_utf8(encoding) else _ESCAPES


def _as_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Restores the bytes of a file's name, and escapes other lone surrogates."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def _as_escapes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Escapes what a terminal cannot show, and says so the first time."""
    if isinstance(error, UnicodeEncodeError) and not _said:
        _said.append(error.encoding)
        # Not through sys.stderr, which may be what is being written to.
        with suppress(OSError):
            os.write(_STDERR, _NOTICE.format(error.encoding).encode("ascii", "replace"))
    return codecs.lookup_error("backslashreplace")(error)


codecs.register_error(BYTES, _as_bytes)
codecs.register_error(_ESCAPES, _as_escapes)


def log(text: str) -> None:
    """Tells people something, on stderr and at once."""
    print(text, file=sys.stderr, flush=True)


def _lines_to(
    file: io.RawIOBase, *, encoding: str = "utf-8", errors: str = "backslashreplace"
) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=encoding,
        errors=errors,
        line_buffering=True,
    )
