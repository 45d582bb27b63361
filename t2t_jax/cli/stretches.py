"""A file of lines of which any stretch can be read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

from t2t_jax.cli.lines import explained, text_of
from t2t_jax.data.lines import open_bytes

_STRIDE = 1_000
"""Lines between two places that are remembered: eight bytes for each of these."""


class NumberedLines:
    """The lines of a file, by their numbers.

    It is read through once, and then from the place that is wanted; of a .gz file all
    that is before is unpacked again.

    Args:
      name: of a plain or .gz file.
      flag: where the name was given, for the message.

    Attributes:
      count: the number of lines.
      sha256: of all of them, unpacked.

    Raises:
      InputMissingError: the file is not there or cannot be read.
      DataError: it ends in .gz and is not gzip.
    """

    def __init__(self, name: str, *, flag: str = "input"):
        self._name, self._flag = name, flag
        self._places: list[int] = []
        self.count = place = 0
        digest = hashlib.sha256()
        with explained(name, flag), open_bytes(name) as file:
            for self.count, line in enumerate(file, start=1):
                if self.count % _STRIDE == 1:
                    self._places.append(place)
                place += len(line)
                digest.update(line)
        self.sha256 = digest.hexdigest()

    def stretch(self, first: int, end: int) -> Iterator[str]:
        """Reads lines that follow one another.

        Args:
          first: number of the first one, from 0.
          end: that of the one behind the last.

        Yields:
          The lines, without their ends; bytes that are no UTF-8 become U+FFFD.
        """
        if first >= end:
            return
        with explained(self._name, self._flag), open_bytes(self._name) as file:
            file.seek(self._places[first // _STRIDE])
            behind = first % _STRIDE
            for line in islice(file, behind, behind + end - first):
                yield text_of(line)
