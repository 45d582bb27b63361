"""Lines of text in and out of the command line: UTF-8, whatever the locale."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from t2t_jax.data.lines import open_bytes
from t2t_jax.errors import DataError, InputMissingError, OutputError


def read_stdin_or_file(name: str) -> list[str]:
    """Reads the lines of a plain or .gz file, or of stdin for `-`.

    Translating goes on whatever the lines are, one in, one out: bytes that are no UTF-8
    become U+FFFD.

    Raises:
      InputMissingError: the file is not there or cannot be read.
      DataError: it ends in .gz and is not gzip.
    """
    try:
        with open_bytes(name) as file:
            data = file.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"--input={name} is broken gzip: {error}.") from error
    except OSError as error:
        raise InputMissingError(
            f"--input={name} must be a file that can be read: {error.strerror}."
        ) from error
    lines = data.decode("utf-8", errors="replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def write_lines(out: BinaryIO, lines: Iterable[str]) -> None:
    """Writes lines, each with its end."""
    for line in lines:
        out.write(line.encode("utf-8") + b"\n")
    out.flush()


@contextmanager
def opened_output(
    name: str, *, flag: str = "output", inputs: Iterable[str] = ()
) -> Iterator[BinaryIO]:
    """Opens a file, or stdout for `-`, to write to; a file appears only when complete.

    To be opened before the work begins: then a name that will not do costs nothing.

    Args:
      name: of the file, or `-`.
      flag: where the name was given, for the message.
      inputs: files that are read, and must not be written over.

    Raises:
      OutputError: the file cannot be made, or is one of those that are read.
    """
    if name == "-":
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
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        out = (place if special else beside).open("wb")
    except OSError as error:
        raise OutputError(
            f"--{flag}={name} must be a file that can be written: {error.strerror}."
        ) from error
    try:
        with out:
            yield out
        if not special:
            os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)
