"""How many lines files have: counted, or foretold from some of their bytes."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.files.file_digests import cached_fact
from t2t_jax.data.files.lines import GZIP_ERRORS, gzip_fault, open_bytes
from t2t_jax.errors import DataError, InputMissingError

_BLOCK = 1 << 22
_QUICKLY_READ = 500_000_000  # bytes, less than a second; packed ones two
_PROBES = 64
_PROBE_BYTES = 1 << 18
_PACKED_PROBE_BYTES = 1 << 26


class Count(NamedTuple):
    """How much there is of something.

    Attributes:
      number: of it.
      is_exact: whether it was counted, and not foretold.
    """

    number: int
    is_exact: bool


def count_lines(path: Path, *, budget: int = sys.maxsize) -> int:
    """Counts the lines of a file without decoding them.

    Args:
      path: a plain or .gz file.
      budget: bytes, unpacked, that may be read.

    Raises:
      DataError: it holds more than the budget, or is broken gzip.
      InputMissingError: it cannot be read.
    """

    def count(path: Path) -> int:
        return _count_lines(path, budget)

    return cached_fact(path, "lines", count)


def _count_lines(path: Path, budget: int) -> int:
    lines, read, last = 0, path.stat().st_size, b"\n"
    if read <= budget:
        read = 0
        with _told(path), open_bytes(path) as file:
            while read <= budget and (block := file.read(_BLOCK)):
                read += len(block)
                lines += block.count(b"\n")
                last = block[-1:]
    if read > budget:
        raise DataError(f"{path} holds over {budget:,} bytes, and is not counted.")
    return lines + (last != b"\n")  # The last line may have no end.


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turns what goes wrong with a file into an error that names it."""
    try:
        yield
    except GZIP_ERRORS as error:
        raise DataError(f"{path}: broken gzip: {gzip_fault(error)}.") from error
    except OSError as error:
        raise InputMissingError(
            f"{path}: cannot be read ({error.strerror})."
        ) from error


def estimate_lines(path: Path, *, budget: int = _QUICKLY_READ) -> Count:
    """Counts the lines of a file, or foretells them where that would take long.

    Args:
      path: a plain or .gz file.
      budget: bytes, unpacked, that may be read to count them.

    Raises:
      DataError: it is broken gzip.
      InputMissingError: it cannot be read.
    """
    try:
        return Count(count_lines(path, budget=budget), True)
    except DataError:
        foretell = _packed_lines if path.suffix == ".gz" else _plain_lines
        with _told(path):
            return Count(foretell(path), False)


def _plain_lines(path: Path) -> int:
    """Looks into a file at places that are evenly far from each other."""
    size, lines, read = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        for probe in range(_PROBES):
            middle = size * (2 * probe + 1) // (2 * _PROBES)
            file.seek(max(middle - _PROBE_BYTES // 2, 0))
            block = file.read(_PROBE_BYTES)
            lines, read = lines + block.count(b"\n"), read + len(block)
    return round(lines * size / max(read, 1))


def _packed_lines(path: Path) -> int:
    """Reads the beginning of a .gz file, and sees how far into the file that is."""
    lines = read = 0
    with path.open("rb") as packed, gzip.open(packed) as file:
        while read < _PACKED_PROBE_BYTES and (block := file.read(_BLOCK)):
            lines, read = lines + block.count(b"\n"), read + len(block)
        share = packed.tell() / os.fstat(packed.fileno()).st_size
    return round(lines / share)
