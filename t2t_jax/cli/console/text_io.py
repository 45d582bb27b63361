"""Reads and writes lines of UTF-8, whatever the locale, and whole files of `--to`."""

from __future__ import annotations

import errno
import io
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import IO, BinaryIO

from t2t_jax.cli.console.stderr import errors_for, log
from t2t_jax.data.files.lines import (
    LineProblems,
    bounded_lines,
    decode_lines,
    open_bytes,
)
from t2t_jax.data.files.progress_bar import escape_controls
from t2t_jax.devices.distributed.processes import current_processes
from t2t_jax.errors import InputMissingError, OutputError
from t2t_jax.files import write_output
from t2t_jax.run.workdir import require_outside_runs

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LINES_PER_WRITE = 1000

_write_lock = Lock()
_partial_files: set[Path] = set()


def text_lines(
    name: str, *, flag: str = "input", strict: bool = False
) -> Iterator[str]:
    """Opens a plain or .gz file, a pipe, or stdin for `-`; iterates over its lines.

    Bytes that are not UTF-8 become lone surrogates, which the translator replaces and
    reports, so that n lines in are always n lines out.

    Args:
      flag: the flag to name in errors.
      strict: whether a line that is not UTF-8 is an error.

    Returns:
      Decoded lines; the iterator raises the errors of reading when it reaches them, and
      DataError with `strict`.

    Raises:
      InputMissingError: the file does not exist or cannot be opened.
    """

    def lines(file: IO[bytes]) -> Iterator[str]:
        with opening(name, flag), file:
            yield from decode(bounded_lines(file), name, flag, strict=strict)

    if name == "-" and sys.stdin is None:
        raise InputMissingError(f"--{flag}=- is stdin, which is closed. Pass a file.")
    with opening(name, flag):
        file = open_bytes(name)
    return lines(file)


def write_lines(out: BinaryIO, lines: Iterable[str]) -> None:
    """Writes lines with line ends; `flush_before_exit` never cuts one in two.

    On a terminal, control characters are escaped, and what its encoding lacks.
    """
    encoding = "utf-8"
    if out.isatty():
        encoding, lines = sys.stdout.encoding, map(escape_controls, lines)
    errors, rest = errors_for(encoding), iter(lines)
    while some := list(islice(rest, _LINES_PER_WRITE)):
        encoded = (line.encode(encoding, errors) + b"\n" for line in some)
        left = memoryview(b"".join(encoded))
        with _write_lock:
            while left:  # A signal may interrupt a write to an unbuffered pipe.
                left = left[out.write(left) :]
            out.flush()


def flush_before_exit() -> None:
    """Finishes the current write and removes partial files before exit.

    To be called from another thread than the writer, which it blocks for good.
    """
    if not _write_lock.acquire(timeout=2.0):
        # The reader of stdout has stopped reading: the flush at exit would block.
        sys.stdout = io.StringIO()
    for partial in _partial_files.copy():
        with suppress(OSError):  # It is only a leftover.
            partial.unlink(missing_ok=True)


@contextmanager
def open_output(
    name: str, *, flag: str = "output", inputs: Iterable[str] = (), stream: bool = False
) -> Iterator[BinaryIO]:
    """Opens a file, or stdout for `-`, for writing; a file appears only when complete.

    To be opened before the work begins, so that an invalid path fails early.

    Args:
      flag: the flag to name in errors.
      inputs: input files, which must not be overwritten.
      stream: whether output must be readable while it is written, which only pipes
        and devices allow.

    Raises:
      OutputError: the file cannot be created, is an input, or cannot be streamed to.
    """
    if name == "-":
        if sys.stdout is None:
            raise OutputError(f"--{flag}=- is stdout, which is closed. Pass a file.")
        with _add_filename("standard output"):
            yield sys.stdout.buffer
        return
    path = resolve_output(name, flag=flag, inputs=inputs)
    # Renaming onto a device or a pipe would remove it.
    if path.exists() and not path.is_file():
        with _add_filename(name), _opened(path, name, flag) as out:
            yield out
        return
    if stream:
        raise OutputError(
            f"--{flag}={name}: --stream cannot write to a file, which appears only "
            "when complete. Redirect stdout, or leave --stream out."
        )
    # Processes of several machines may write into one directory.
    partial = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    _partial_files.add(partial)
    try:
        with _add_filename(name), _opened(partial, name, flag) as out:
            yield out
        try:
            os.replace(partial, path)
        except OSError as error:
            error.filename = name  # instead of the temporary name
            raise
    finally:
        partial.unlink(missing_ok=True)
        _partial_files.discard(partial)


def _opened(path: Path, name: str, flag: str) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise OutputError(
            f"--{flag}={name} must be writable: {error.strerror}. Choose another."
        ) from error


@contextmanager
def _add_filename(name: str) -> Iterator[None]:
    """Adds a file name to errors of a full disk, which lack one."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL and error.filename is None:
            error.filename = name
        raise


def resolve_output(name: str, *, flag: str = "output", inputs: Iterable[str]) -> Path:
    """Resolves an output path, following links.

    Raises:
      OutputError: it is one of the inputs, or a file of a run.
    """
    path = Path(os.path.realpath(name))
    if any(path == Path(os.path.realpath(file)) for file in inputs):
        raise OutputError(f"--{flag}={name} is one of the input files. Choose another.")
    require_outside_runs(path, flag=flag)
    return path


def make_directory(name: str) -> Path:
    """Creates the directory of a mode's files, if it is missing.

    Raises:
      OutputError: it cannot be created, or is not writable.
    """
    path = Path(name)
    require_outside_runs(name, flag="to")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refusal(path, error.strerror, verb="create") from error
    if not os.access(path, os.W_OK):
        raise _refusal(path, "it is not writable. Fix permissions")
    return path


def check_page(name: str | Path, *, own: Path | None = None) -> Path:
    """Checks that a page can be written.

    Args:
      name: of the file, as the user gave it.
      own: a file of a run that may be replaced; every other one is refused.

    Raises:
      OutputError: the file cannot be written.
    """
    path, folder = Path(name), Path(name).parent
    if own is None or os.path.realpath(name) != os.path.realpath(own):
        require_outside_runs(name, flag="to")
    if path.is_dir():
        raise _refusal(path, "it is a directory")
    if not folder.is_dir():
        raise _refusal(path, f"{folder} is not a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refusal(path, f"{folder} is not writable. Fix permissions")
    return path


def write_file(path: Path, content: bytes | str) -> None:
    """Writes a file atomically, and prints its path to stdout.

    Raises:
      OSError: the disk is full.
      OutputError: the file is not writable.
    """
    write_output(path, content, what="results")
    print(path, flush=True)


def _refusal(path: Path, reason: str | None, *, verb: str = "write") -> OutputError:
    return OutputError(f"Cannot {verb} --to={path}: {reason}. Choose another.")


@contextmanager
def opening(name: str, flag: str = "input") -> Iterator[None]:
    """Names file and flag in system errors of reading a file.

    Raises:
      InputMissingError: the file does not exist or cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise InputMissingError(
            f"--{flag}={name} must be a file to read: {error.strerror or error}."
        ) from error


def decode(
    lines: Iterable[bytes], name: str, flag: str = "input", *, strict: bool = False
) -> Iterator[str]:
    """Decodes the lines of a file, from its first line.

    Args:
      flag: the flag to name in errors.
      strict: whether a line that is not UTF-8 is an error.

    Raises:
      DataError: the file begins with the byte order mark of another encoding or with
        gzip's magic number, is broken gzip, or has a line that is too long; or, with
        `strict`, a line is not UTF-8.
    """
    problems, warn = LineProblems(), None if strict else _warn
    named = f"--{flag}={name}"
    for line in decode_lines(lines, named, problems, file=name, warn=warn):
        problems.raise_if_any()
        yield line or ""
    problems.raise_if_any()


def _warn(fault: str) -> None:
    if current_processes().is_first:
        log(f"warning: {fault}")
