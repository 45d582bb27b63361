"""A file of lines of which any stretch can be read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import islice
from typing import IO

from t2t_jax.cli.console.text_io import (
    check_format,
    io_errors_as_user_errors,
    require_utf8,
    text_of,
)
from t2t_jax.data.files.lines import BYTE_ORDER_MARK, open_bytes
from t2t_jax.errors import DataError

_STRIDE = 1_000
"""Lines between two places that are remembered: eight bytes for each of these."""


class LineIndex:
    """The lines of a file, by their numbers.

    It is read through once, and then from the place that is wanted; of a .gz file all
    that is before is unpacked again.

    Args:
      name: of a plain or .gz file.
      flag: where the name was given, for the message.
      strict: whether a line that is not UTF-8 is an error.

    Attributes:
      count: the number of lines.
      sha256: of all of them, unpacked.

    Raises:
      InputMissingError: the file is not there or cannot be read.
      DataError: it ends in .gz and is not gzip, is marked as another format than UTF-8,
        or changes while it is read; or a line is not what `strict` demands.
    """

    def __init__(self, name: str, *, flag: str = "input", strict: bool = False):
        self._name, self._flag = name, flag
        self._places: list[int] = []
        self.count = place = 0
        digest = hashlib.sha256()
        with io_errors_as_user_errors(name, flag), open_bytes(name) as file:
            self._was = _state_of(file)
            for self.count, line in enumerate(file, start=1):
                if self.count % _STRIDE == 1:
                    self._places.append(place)
                place += len(line)
                digest.update(line)
                self._check(line, strict)
            self._require_unchanged(file)
        self.sha256 = digest.hexdigest()

    def _check(self, line: bytes, strict: bool) -> None:
        """Judges a line while the file is read through for the first time."""
        if self.count == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if strict:
            require_utf8(line, self._name, self._flag, self.count)
        elif self.count == 1:
            check_format(line, self._name, self._flag)

    def read_range(self, first: int, end: int) -> Iterator[str]:
        """Reads lines that follow one another.

        Args:
          first: number of the first one, from 0.
          end: that of the one behind the last.

        Yields:
          The lines, made as those of `lines.text_lines`.

        Raises:
          InputMissingError: the file cannot be read any more.
          DataError: it is no longer the one that was read through.
        """
        if first >= end:
            return
        with (
            io_errors_as_user_errors(self._name, self._flag),
            open_bytes(self._name) as file,
        ):
            self._require_unchanged(file)
            file.seek(self._places[first // _STRIDE])
            behind, left = first % _STRIDE, end - first
            for number, line in enumerate(islice(file, behind, behind + left), first):
                mark = b"" if number else BYTE_ORDER_MARK
                yield text_of(line.removeprefix(mark))
                left -= 1
            self._require_unchanged(file, missing=left)

    def _require_unchanged(self, file: IO[bytes], *, missing: int = 0) -> None:
        if missing or _state_of(file) != self._was:
            raise DataError(
                f"--{self._flag}={self._name} has changed since the job began, and its "
                "translations would be of two texts. Bring the old one back, and give "
                "the same command again, with --resume."
            )


def _state_of(file: IO[bytes]) -> tuple[int, int]:
    """Returns what changes with a file; its inode may, where one is on a network."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns
