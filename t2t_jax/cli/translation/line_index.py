"""Random access to the lines of a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import islice
from typing import IO

from t2t_jax.cli.console.text_io import (
    check_format,
    decode_line,
    io_errors_as_user_errors,
    require_utf8,
)
from t2t_jax.data.files.lines import BYTE_ORDER_MARK, bounded_lines, open_bytes
from t2t_jax.errors import DataError

_STRIDE = 1_000
"""Lines between two indexed offsets, of eight bytes each."""


class LineIndex:
    """Indexes the lines of a file in one pass, and then reads any range of them.

    Reading a range of a .gz file decompresses everything before it.

    Args:
      name: of a plain or .gz file.
      flag: the flag to name in errors.
      strict: whether a line that is not UTF-8 is an error.

    Attributes:
      count: the number of lines.
      sha256: of the uncompressed content.

    Raises:
      InputMissingError: the file does not exist or cannot be read.
      DataError: it ends in .gz and is not gzip, is in another format than UTF-8, or
        changes while it is read; or, with `strict`, a line is not UTF-8.
    """

    def __init__(self, name: str, *, flag: str = "input", strict: bool = False):
        self._name, self._flag = name, flag
        self._offsets: list[int] = []
        self.count = offset = 0
        digest = hashlib.sha256()
        with io_errors_as_user_errors(name, flag), open_bytes(name) as file:
            self._stat = _size_and_mtime(file)
            for self.count, line in enumerate(bounded_lines(file), start=1):
                if self.count % _STRIDE == 1:
                    self._offsets.append(offset)
                offset += len(line)
                digest.update(line)
                self._check(line, strict)
            self._require_unchanged(file)
        self.sha256 = digest.hexdigest()

    def _check(self, line: bytes, strict: bool) -> None:
        """Checks the line that was read last."""
        if self.count == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if strict:
            require_utf8(line, self._name, self._flag, self.count)
        elif self.count == 1:
            check_format(line, self._name, self._flag)

    def read_range(self, first: int, end: int) -> Iterator[str]:
        """Reads the lines `first` to `end - 1`, numbered from 0.

        Yields:
          The lines, decoded as by `text_io.text_lines`.

        Raises:
          InputMissingError: the file cannot be read.
          DataError: it has changed since it was indexed.
        """
        if first >= end:
            return
        with (
            io_errors_as_user_errors(self._name, self._flag),
            open_bytes(self._name) as file,
        ):
            self._require_unchanged(file)
            file.seek(self._offsets[first // _STRIDE])
            skipped, left = first % _STRIDE, end - first
            lines = islice(bounded_lines(file), skipped, skipped + left)
            for number, line in enumerate(lines, first):
                prefix = b"" if number else BYTE_ORDER_MARK
                yield decode_line(line.removeprefix(prefix))
                left -= 1
            self._require_unchanged(file, missing=left)

    def _require_unchanged(self, file: IO[bytes], *, missing: int = 0) -> None:
        if missing or _size_and_mtime(file) != self._stat:
            raise DataError(
                f"--{self._flag}={self._name} has changed since the job began. Restore "
                "the old file and rerun the same command, with --resume."
            )


def _size_and_mtime(file: IO[bytes]) -> tuple[int, int]:
    # Not the inode, which may change on network file systems.
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns
