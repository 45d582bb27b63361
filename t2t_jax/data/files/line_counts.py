"""Counts the lines of files, or estimates them for large files."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.files.file_digests import cached_fact
from t2t_jax.data.files.lines import GZIP_ERRORS, gzip_fault, open_bytes
from t2t_jax.errors import DataError, InputMissingError

_BLOCK = 1 << 22
_FAST_BYTES = 500_000_000  # under a second to read; two if compressed
_PROBE_BYTES = 1 << 24


class Count(NamedTuple):
    """A number of lines or pairs."""

    number: int
    is_exact: bool


class _OverBudgetError(DataError):
    """A file is too large to be counted; holds an estimate of its lines."""

    def __init__(self, path: Path, budget: int, estimate: int):
        super().__init__(f"{path} holds over {budget:,} bytes and is not counted.")
        self.estimate = estimate


def count_lines(path: Path, *, budget: int = sys.maxsize) -> int:
    """Counts the lines of a file without decoding them.

    Args:
      budget: uncompressed bytes that may be read.

    Raises:
      DataError: the file exceeds the budget or is broken gzip.
      InputMissingError: the file cannot be read.
    """
    try:
        return cached_fact(path, "lines", partial(_count_lines, budget=budget))
    except GZIP_ERRORS as error:
        raise DataError(f"{path}: broken gzip: {gzip_fault(error)}.") from error
    except OSError as error:
        raise InputMissingError(
            f"{path}: cannot be read ({error.strerror})."
        ) from error


def estimate_lines(path: Path, *, budget: int = _FAST_BYTES) -> Count:
    """Counts the lines of a file, or estimates them if counting would take long.

    Args:
      budget: as for `count_lines`.

    Raises:
      DataError: the file is broken gzip.
      InputMissingError: the file cannot be read.
    """
    try:
        return Count(count_lines(path, budget=budget), True)
    except _OverBudgetError as error:
        return Count(error.estimate, False)


def _count_lines(path: Path, budget: int) -> int:
    """Counts lines; beyond the budget they are estimated from the file's beginning."""
    lines, read, last = 0, 0, b"\n"
    size = path.stat().st_size
    most = budget if size <= budget else min(budget, _PROBE_BYTES)
    with open_bytes(path) as file:
        while read <= most and (block := file.read(_BLOCK)):
            read += len(block)
            lines += block.count(b"\n")
            last = block[-1:]
        if read > most:
            # Of a .gz file too this is the position on disk, in compressed bytes.
            share = os.lseek(file.fileno(), 0, os.SEEK_CUR) / size
            raise _OverBudgetError(path, budget, round(lines / share))
    return lines + (last != b"\n")  # The last line may lack its LF.
