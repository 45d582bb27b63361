"""Counts the lines of files, or estimates them for large files."""

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
_FAST_BYTES = 500_000_000  # under a second to read; two if compressed
_PROBES = 64
_PROBE_BYTES = 1 << 18
_GZIP_PROBE_BYTES = 1 << 26


class Count(NamedTuple):
    """A number of lines or pairs."""

    number: int
    is_exact: bool


def count_lines(path: Path, *, budget: int = sys.maxsize) -> int:
    """Counts the lines of a file without decoding them.

    Args:
      budget: uncompressed bytes that may be read.

    Raises:
      DataError: the file exceeds the budget or is broken gzip.
      InputMissingError: the file cannot be read.
    """

    def count(path: Path) -> int:
        return _count_lines(path, budget)

    return cached_fact(path, "lines", count)


def _count_lines(path: Path, budget: int) -> int:
    lines, read, last = 0, path.stat().st_size, b"\n"
    if read <= budget:
        read = 0
        with _read_errors(path), open_bytes(path) as file:
            while read <= budget and (block := file.read(_BLOCK)):
                read += len(block)
                lines += block.count(b"\n")
                last = block[-1:]
    if read > budget:
        raise DataError(f"{path} holds over {budget:,} bytes and is not counted.")
    return lines + (last != b"\n")  # The last line may lack its LF.


@contextlib.contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turns read errors into user errors that name the file."""
    try:
        yield
    except GZIP_ERRORS as error:
        raise DataError(f"{path}: broken gzip: {gzip_fault(error)}.") from error
    except OSError as error:
        raise InputMissingError(
            f"{path}: cannot be read ({error.strerror})."
        ) from error


def estimate_lines(path: Path, *, budget: int = _FAST_BYTES) -> Count:
    """Counts the lines of a file, or estimates them if counting would take long.

    Args:
      budget: uncompressed bytes that may be read to count exactly.

    Raises:
      DataError: the file is broken gzip.
      InputMissingError: the file cannot be read.
    """
    try:
        return Count(count_lines(path, budget=budget), True)
    except DataError:
        estimate = _estimate_gzip if path.suffix == ".gz" else _estimate_plain
        with _read_errors(path):
            return Count(estimate(path), False)


def _estimate_plain(path: Path) -> int:
    """Estimates the lines from evenly spaced blocks of the file."""
    size, lines, read = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        for probe in range(_PROBES):
            middle = size * (2 * probe + 1) // (2 * _PROBES)
            file.seek(max(middle - _PROBE_BYTES // 2, 0))
            block = file.read(_PROBE_BYTES)
            lines, read = lines + block.count(b"\n"), read + len(block)
    return round(lines * size / max(read, 1))


def _estimate_gzip(path: Path) -> int:
    """Estimates the lines from the beginning and the compressed share it takes."""
    lines = read = 0
    with path.open("rb") as compressed, gzip.open(compressed) as file:
        while read < _GZIP_PROBE_BYTES and (block := file.read(_BLOCK)):
            lines, read = lines + block.count(b"\n"), read + len(block)
        share = compressed.tell() / os.fstat(compressed.fileno()).st_size
    return round(lines / share)
