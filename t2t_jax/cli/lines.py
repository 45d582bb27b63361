"""Lines of text in and out of the command line: UTF-8, whatever the locale."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from t2t_jax.errors import InputMissingError, OutputError


def read_stdin_or_file(name: str) -> list[str]:
    """Reads the lines of a file, or of stdin for `-`; bytes that are no UTF-8 become �.

    Translating goes on whatever the lines are: one in, one out.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InputMissingError(
            f"--input={name} must be a file that can be read: {error.strerror}."
        ) from error
    lines = data.decode("utf-8", errors="replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def write_lines(name: str, lines: Iterable[str]) -> None:
    """Writes lines to a file, or to stdout for `-`; a file appears only when complete.

    Raises:
      OutputError: the file cannot be made.
    """
    with _opened(name) as out:
        for line in lines:
            out.write(line.encode("utf-8") + b"\n")
        out.flush()


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdout.buffer
        return
    beside = Path(f"{name}.tmp")
    try:
        with beside.open("wb") as out:
            yield out
        os.replace(beside, name)
    except OSError as error:
        raise OutputError(
            f"--output={name} must be a file that can be written: {error.strerror}."
        ) from error
