"""Writes stderr and log files without ever failing.

If a pipe or terminal is closed, or the disk of a log is full, output is dropped; the
run continues, and its exit code is unaffected.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from t2t_jax.data.files.progress_bar import escape_controls

_STDERR = 2

BYTES = "t2t_jax.bytes"
"""The `errors` handler that encodes file names as their original bytes."""


class _DroppingFile(io.FileIO):
    """Drops what cannot be written."""

    def write(self, data: Any, /) -> int:
        try:
            # None if a non-blocking pipe is full.
            return super().write(data) or len(data)
        except OSError:
            return len(data)

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # Some file systems report a full disk only now.
            return


def open_log(path: Path) -> TextIO:
    """Opens a log file for appending; each line is written at once or dropped.

    Raises:
      OSError: the file cannot be opened.
    """
    return _line_writer(_DroppingFile(path, "a"), "utf-8")


def make_stderr_robust() -> None:
    """Makes `sys.stderr` drop what it cannot write; encoded as `configure_stdout`'s.

    A closed stderr is replaced by the null device: otherwise the next file
    opened would get its descriptor, and native log output would go into a checkpoint.
    """
    encoding = "utf-8"
    if sys.stderr is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDERR)
    elif sys.stderr.isatty():
        encoding = sys.stderr.encoding
    sys.stderr = _line_writer(_DroppingFile(_STDERR, "w", closefd=False), encoding)


def configure_stdout() -> None:
    """Makes `sys.stdout` accept any text.

    Files and pipes get UTF-8, whatever the locale and PYTHONIOENCODING, and file names
    as their original bytes; a terminal its own encoding, with escapes.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors=errors_for(encoding))


def errors_for(encoding: str) -> str:
    """Returns the `errors` handler of output in an encoding: escapes but in UTF-8."""
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    return BYTES if is_utf8 else "backslashreplace"


def _encode_as_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Restores the bytes of a file name, and escapes other lone surrogates."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


codecs.register_error(BYTES, _encode_as_bytes)


def log(text: str) -> None:
    """Prints to stderr, with control characters escaped, and flushes."""
    print(escape_controls(text), file=sys.stderr, flush=True)


def _line_writer(file: io.RawIOBase, encoding: str) -> TextIO:
    buffer, errors = io.BufferedWriter(file), errors_for(encoding)
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=True)
