"""Writes stderr and log files without ever failing; turns exceptions into messages.

If a pipe or terminal is closed, or the disk of a log is full, output is dropped; the
run continues, and its exit code is unaffected.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from t2t_jax.data.files.progress_bar import escape_controls
from t2t_jax.devices.distributed.processes import current_processes
from t2t_jax.errors import StoppedError, UnavailableError, UserError

_STDERR = 2
_SHOWN_PROBLEMS = 20
_INTERNAL_ERROR = 70
# System errors as sysexits.h: 73 cannot create output, 74 I/O error.
_CODES = dict.fromkeys((errno.EACCES, errno.EROFS), 73) | dict.fromkeys(
    (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO), 74
)

_prefixes: dict[str, str] = {}

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
        with suppress(OSError):  # Some file systems report a full disk only now.
            super().close()


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
    return BYTES if codecs.lookup(encoding).name == "utf-8" else "backslashreplace"


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


def name_flags(values: Mapping[str, Any]) -> None:
    """Registers the flags to name in errors about arguments.

    The package's errors are worded for Python, such as "runs/x is not a run …" or
    "checkpoint=7 must be …"; on the command line these arguments are flags.
    """
    _prefixes.clear()
    if workdir := values.get("workdir"):
        _prefixes[f"{workdir.path} "] = "--workdir="
    if which := values.get("checkpoint"):
        _prefixes[f"checkpoint={which} "] = "--"


def _with_flag(problem: str) -> str:
    found = (named for start, named in _prefixes.items() if problem.startswith(start))
    return next(found, "") + problem


def report_error(error: BaseException) -> int:
    """Prints the error to stderr, with a traceback only for internal errors.

    With several processes each line has the rank's prefix.

    Returns:
      The exit code (see `t2t_jax.errors`; 70 for an internal error, 74 for a full
      disk or a failing one).
    """
    if isinstance(error, KeyboardInterrupt):
        name = error.args[0] if error.args else "SIGINT"
        return _report(StoppedError(f"Stopped by {name}. Rerun the same command."))
    if isinstance(error, UserError):
        return _report(error)
    if isinstance(error, BrokenPipeError):
        # The reader closed the pipe, as `head` does. Python would fail again when it
        # flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError) and error.errno in _CODES:
        where = f": {error.filename}" if error.filename else ""
        _write([f"error: {error.strerror}{where}"])
        return _CODES[error.errno]
    message = _lost_process_message(error) or _no_devices_message(error)
    if message:
        return _report(UnavailableError(message))
    fatal = "FATAL " if current_processes().log_prefix else ""
    _write(f"{fatal}{''.join(traceback.format_exception(error))}".splitlines())
    return _INTERNAL_ERROR


def _lost_process_message(error: BaseException) -> str:
    """Explains a JAX error that follows from an unresponsive process; else ""."""
    processes = current_processes()
    if processes.count == 1 or type(error).__name__ != "JaxRuntimeError":
        return ""
    ranks = ", ".join(map(str, processes.unresponsive_ranks()))
    return ranks and (
        f"Process {ranks} of {processes.count} has ended, or cannot be reached. Read "
        "the end of its log, and rerun the same commands.\n"
        f"JAX's error: {str(error).splitlines()[0][:200]}"
    )


def _no_devices_message(error: BaseException) -> str:
    """Explains JAX's error that it cannot use devices; "" for other errors."""
    frames = traceback.extract_tb(error.__traceback__)
    first = (str(error).splitlines() or ["no such device"])[0]
    is_of_devices = isinstance(error, RuntimeError) and "initialize backend" in first
    if isinstance(error, AssertionError) and frames:
        # Without its plugin, a platform of JAX_PLATFORMS fails an assertion.
        is_of_devices = frames[-1].filename.endswith("xla_bridge.py")
    if not is_of_devices:
        return ""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    return (
        f"JAX cannot use the devices of JAX_PLATFORMS={platforms or chr(39) * 2}: "
        f"{first}\nUnset it, or set it to cpu. --mode=doctor checks the devices."
    )


def _report(error: UserError) -> int:
    lines = [
        f"error: {problem}" + f" ({times:,} times)" * (times > 1)
        for problem, times in Counter(map(_with_flag, error.problems)).items()
    ]
    if hidden := len(lines[_SHOWN_PROBLEMS:]) + error.unlisted:
        lines[_SHOWN_PROBLEMS:] = [f"error: and {hidden} more."]
    _write(lines)
    return error.exit_code


def _write(lines: list[str]) -> None:
    """Writes lines in one call, so that those of other processes do not interleave."""
    prefix = current_processes().log_prefix
    sys.stderr.write(escape_controls("".join(f"{prefix}{line}\n" for line in lines)))
    sys.stderr.flush()
