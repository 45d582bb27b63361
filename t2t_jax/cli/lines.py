"""Lines of text in and out of the command line: UTF-8, whatever the locale."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from queue import Queue
from threading import Lock, Thread
from typing import IO, BinaryIO, TypeAlias

from t2t_jax.data.lines import open_bytes
from t2t_jax.errors import DataError, InputMissingError, OutputError

_AT_ONCE = 1000  # lines
_PATIENCE = 2.0  # seconds

_Waiting: TypeAlias = Queue[str | Exception | None]
"""Lines, and after the last one why there are no more; None is the end of the file."""

_writing = Lock()
_unfinished: set[Path] = set()


def read_stdin_or_file(name: str) -> list[str]:
    """Reads the lines of a plain or .gz file, or of stdin for `-`.

    Translating goes on whatever the lines are, one in, one out: bytes that are no UTF-8
    become U+FFFD.

    Raises:
      InputMissingError: the file is not there or cannot be read.
      DataError: it ends in .gz and is not gzip.
    """
    with _explained(name), _opened_input(name) as file:
        return [_text(line) for line in file]


def waiting_lines(name: str, *, most: int) -> Iterator[list[str]]:
    """Reads lines as they come, and hands out together those that wait.

    A thread begins to read at once. It reads no further ahead than `most` lines, so a
    file of any length takes little memory, and whoever writes into a pipe is held up.

    Args:
      name: of a plain or .gz file or a pipe, or `-` for stdin.
      most: lines that may wait.

    Returns:
      An iterator over groups of 1 to `most` lines, in their order, made as those of
      `read_stdin_or_file`. It waits only where no line does, and raises what reading
      has met after the lines before that.

    Raises:
      InputMissingError: the file is not there or cannot be opened.
    """
    with _explained(name):
        file = _opened_input(name)
    waiting: _Waiting = Queue(most)
    # A daemon: where nobody wants the lines any more, nobody waits for them either.
    Thread(target=_read_into, args=(waiting, file, name), daemon=True).start()
    return _groups(waiting, most)


def write_lines(out: BinaryIO, lines: Iterable[str]) -> None:
    """Writes lines, each with its end; no signal comes between the parts of one."""
    rest = iter(lines)
    while some := [line.encode("utf-8") + b"\n" for line in islice(rest, _AT_ONCE)]:
        left = memoryview(b"".join(some))
        with _writing:
            while left:  # An unbuffered pipe takes a part where a signal comes.
                left = left[out.write(left) :]
            out.flush()


def put_down() -> None:
    """Leaves whole lines and whole files behind, as the last act of this process.

    For another thread than the one that writes, which writes no more from here on.
    """
    if not _writing.acquire(timeout=_PATIENCE):
        # Whoever reads our stdout does so no more; nobody else may wait for that.
        sys.stdout = io.StringIO()
    for beside in _unfinished.copy():
        beside.unlink(missing_ok=True)


@contextmanager
def opened_output(
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
        yield sys.stdout.buffer
        return
    place = Path(os.path.realpath(name))
    if any(place == Path(os.path.realpath(file)) for file in inputs):
        raise OutputError(
            f"--{flag}={name} must be another file than those that are read, and is "
            "one of them. Name another."
        )
    # A device or a pipe is written to as it is: to rename onto it would remove it.
    special = place.exists() and not place.is_file()
    if streamed and not special:
        raise OutputError(
            f"--{flag}={name} would be a file, which appears when it is complete, and "
            "--stream answers line by line. Redirect stdout, or leave --stream out."
        )
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    _unfinished.add(beside)
    try:
        try:
            out = (place if special else beside).open("wb")
        except OSError as error:
            raise OutputError(
                f"--{flag}={name} must be a file that can be written: {error.strerror}."
            ) from error
        with out:
            yield out
        if not special:
            os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)
        _unfinished.discard(beside)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"--input={name} is broken gzip: {error}.") from error
    except OSError as error:
        raise InputMissingError(
            f"--input={name} must be a file that can be read: {error.strerror}."
        ) from error


def _opened_input(name: str) -> IO[bytes]:
    if name == "-" and sys.stdin is None:
        raise InputMissingError(
            "--input=- is standard input, which is closed. Name a file."
        )
    return open_bytes(name)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").decode("utf-8", errors="replace")


def _read_into(waiting: _Waiting, file: IO[bytes], name: str) -> None:
    end: Exception | None = None
    try:
        with _explained(name), file:
            for line in file:
                waiting.put(_text(line))
    except Exception as error:  # Whatever it is: who waits for lines must not for ever.
        end = error
    waiting.put(end)


def _groups(waiting: _Waiting, most: int) -> Iterator[list[str]]:
    lines: list[str] = []
    while isinstance(came := waiting.get(), str):
        lines.append(came)
        if len(lines) == most or waiting.empty():
            yield lines
            lines = []
    if lines:
        yield lines
    if came is not None:
        raise came
