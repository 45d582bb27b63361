"""Lines of text in and out of the command line: UTF-8, whatever the locale."""

from __future__ import annotations

import errno
import io
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import IO, Any, BinaryIO, cast

from t2t_jax.cli.console.stderr import BYTES, is_utf8, log
from t2t_jax.data.files.lines import (
    BYTE_ORDER_MARK,
    GZIP_ERRORS,
    conversion,
    foreign_format,
    gzip_fault,
    marked_format,
    open_bytes,
)
from t2t_jax.distributed.processes import current_processes
from t2t_jax.errors import DataError, InputMissingError, OutputError
from t2t_jax.run.workdir import require_outside_runs

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_AT_ONCE = 1000  # lines
_PATIENCE = 2.0  # seconds

_writing = Lock()
_unfinished: set[Path] = set()


def read_stdin_or_file(name: str) -> list[str]:
    """Reads the lines of a plain or .gz file, or of stdin for `-`.

    Bytes that are not UTF-8 become lone surrogates, which the translator replaces and
    reports: n lines in are n lines out, whatever they hold.

    Raises:
      InputMissingError: the file is not there or cannot be read.
      DataError: it ends in .gz and is not gzip.
    """
    return list(text_lines(name))


def text_lines(
    name: str, *, flag: str = "input", strict: bool = False
) -> Iterator[str]:
    """Opens a file, and reads its lines one at a time.

    Args:
      name: of a plain or .gz file or a pipe, or `-` for stdin.
      flag: where the name was given, for the message.
      strict: whether a line that is not UTF-8 is an error.

    Returns:
      An iterator over lines made as those of `read_stdin_or_file`, which raises what
      that does when it comes there, and DataError at what `strict` forbids.

    Raises:
      InputMissingError: the file is not there or cannot be opened.
    """
    with io_errors_as_user_errors(name, flag):
        file = opened_input(name, flag)
    return _lines_of(file, name, flag, strict=strict)


def write_lines(out: BinaryIO, lines: Iterable[str]) -> None:
    """Writes lines, each with its end; no signal comes between the parts of one."""
    rest = iter(lines)
    while some := list(islice(rest, _AT_ONCE)):
        encoded = (line.encode("utf-8", BYTES) + b"\n" for line in some)
        left = memoryview(b"".join(encoded))
        with _writing:
            while left:  # An unbuffered pipe takes a part where a signal comes.
                left = left[out.write(left) :]
            out.flush()


def flush_before_exit() -> None:
    """Leaves whole lines and whole files behind, as the last act of this process.

    For another thread than the one that writes, which writes no more from here on.
    """
    if not _writing.acquire(timeout=_PATIENCE):
        # Whoever reads our stdout does so no more; nobody else may wait for that.
        sys.stdout = io.StringIO()
    for beside in _unfinished.copy():
        beside.unlink(missing_ok=True)


@contextmanager
def open_output(
    name: str,
    *,
    flag: str = "output",
    inputs: Iterable[str] = (),
    streamed: bool = False,
) -> Iterator[BinaryIO]:
    """Opens a file, or stdout for `-`, to write to; a file appears only when complete.

    To be opened before the work begins: then a name that will not do costs nothing.

    Args:
      name: of the file, or `-`.
      flag: where the name was given, for the message.
      inputs: files that are read, and must not be written over.
      streamed: whether somebody is to read while it is written, which only a pipe or a
        device allows.

    Raises:
      OutputError: the file cannot be made, or is one of those that are read, or is to
        be streamed to.
    """
    if name == "-":
        if sys.stdout is None:
            raise OutputError(
                f"--{flag}=- is standard output, which is closed. Name a file."
            )
        with _named("standard output"):
            yield _stdout()
        return
    place = resolve_output(name, flag=flag, inputs=inputs)
    # A device or a pipe is written to as it is: to rename onto it would remove it.
    special = place.exists() and not place.is_file()
    if streamed and not special:
        raise OutputError(
            f"--{flag}={name} would be a file, which appears when it is complete, and "
            "--stream answers line by line. Redirect stdout, or leave --stream out."
        )
    # Processes of several machines may write into one directory.
    beside = place.with_name(f".{place.name}.{socket.gethostname()}.{os.getpid()}")
    _unfinished.add(beside)
    try:
        try:
            out = (place if special else beside).open("wb")
        except OSError as error:
            raise OutputError(
                f"--{flag}={name} must be a file that can be written: "
                f"{error.strerror}. Choose another."
            ) from error
        with _named(name), out:
            yield out
        if not special:
            try:
                os.replace(beside, place)
            except OSError as error:
                error.filename = name  # Nobody has named the other one.
                raise
    finally:
        beside.unlink(missing_ok=True)
        _unfinished.discard(beside)


class _TerminalBytes(io.RawIOBase):
    """Shows UTF-8 on a terminal of another encoding, as far as that has it."""

    def write(self, data: Any, /) -> int:
        sys.stdout.write(bytes(data).decode())
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def _stdout() -> BinaryIO:
    if sys.stdout.isatty() and not is_utf8(sys.stdout.encoding):
        return cast(BinaryIO, _TerminalBytes())
    return sys.stdout.buffer


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Says what there is no more room for; writing itself knows no names."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = name
        raise


def resolve_output(
    name: str, *, flag: str = "output", inputs: Iterable[str] = ()
) -> Path:
    """Follows links to the file that is to be written.

    Raises:
      OutputError: it is one of those that are read, or a file of a run.
    """
    place = Path(os.path.realpath(name))
    if any(place == Path(os.path.realpath(file)) for file in inputs):
        raise OutputError(
            f"--{flag}={name} must be another file than those that are read, and is "
            "one of them. Choose another."
        )
    require_outside_runs(place, flag=flag)
    return place


@contextmanager
def io_errors_as_user_errors(name: str, flag: str = "input") -> Iterator[None]:
    """Turns what goes wrong with reading a file into an error that names it.

    Args:
      flag: where the name was given.

    Raises:
      InputMissingError: the file is not there or cannot be read.
      DataError: it ends in .gz and is not gzip.
    """
    try:
        yield
    except GZIP_ERRORS as error:
        fault = gzip_fault(error)
        raise DataError(f"--{flag}={name} is broken gzip: {fault}.") from error
    except OSError as error:
        raise InputMissingError(
            f"--{flag}={name} must be a file that can be read: "
            f"{error.strerror or error}."
        ) from error


def opened_input(name: str, flag: str = "input") -> IO[bytes]:
    """Opens a plain or .gz file, or stdin for `-`.

    Args:
      flag: where the name was given.

    Raises:
      InputMissingError: there is no standard input.
      OSError: the file cannot be opened.
    """
    if name == "-" and sys.stdin is None:
        raise InputMissingError(
            f"--{flag}=- is standard input, which is closed. Name a file."
        )
    return open_bytes(name)


def _lines_of(file: IO[bytes], name: str, flag: str, *, strict: bool) -> Iterator[str]:
    with io_errors_as_user_errors(name, flag), file:
        yield from decoded(file, name, flag, strict=strict)


def decoded(
    lines: Iterable[bytes], name: str, flag: str = "input", *, strict: bool = False
) -> Iterator[str]:
    """Decodes the lines of a file from its beginning, whatever they hold.

    A byte order mark is dropped. A file in another encoding that can be recognized is
    reported on stderr, unless it is refused.

    Args:
      lines: of the file, from the first one on.
      flag: where the name was given, for the message.
      strict: whether a line that is not UTF-8 is an error.

    Raises:
      DataError: the mark of another encoding, or of gzip, stands at the beginning; or
        `strict` is set, and a line is not UTF-8.
    """
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
            if not strict:
                check_format(line, name, flag)
        if strict:
            require_utf8(line, name, flag, number)
        yield text_of(line)


def text_of(line: bytes) -> str:
    """Decodes a line, whatever it holds, and takes its end off.

    Bytes that are not UTF-8 become lone surrogates, which no UTF-8 holds.
    """
    return line.removesuffix(b"\n").decode("utf-8", errors="surrogateescape")


def check_format(head: bytes, name: str, flag: str) -> None:
    """Refuses a file that is marked as another format than UTF-8.

    One that only looks as if it were is warned of on stderr, once for all processes.

    Args:
      name: of the file, or `-`.
      flag: where the name was given.

    Raises:
      DataError: it begins with the mark of another encoding, or of gzip.
    """
    encoding = foreign_format(head)
    if not encoding:
        return
    advice = conversion(encoding, name.removeprefix("-"))
    said = f"--{flag}={name} is {encoding} and not UTF-8. {advice}"
    if marked_format(head):
        raise DataError(said)
    if current_processes().is_first:
        log(f"warning: {said}")


def require_utf8(line: bytes, name: str, flag: str, number: int) -> None:
    """Checks a line, as `--strict` asks.

    Args:
      flag: where the name was given.
      number: of the line, from 1.

    Raises:
      DataError: it is not UTF-8, or holds a NUL byte.
    """
    advice = "Convert the file to UTF-8, or remove --strict."
    if number == 1 and (encoding := foreign_format(line)):
        advice = conversion(encoding, name.removeprefix("-"))
        raise DataError(f"--{flag}={name} is {encoding} and not UTF-8. {advice}")
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"--{flag}={name}, line {number:,}: invalid UTF-8 (byte "
            f"{line[error.start]:#04x} in column {error.start + 1}). {advice}"
        ) from error
    if b"\0" in line:
        raise DataError(f"--{flag}={name}, line {number:,}: holds a NUL byte. {advice}")
