"""The protocol of a corpus."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Protocol


class Corpus(Protocol):
    """Sentence pairs that can be read repeatedly, always the same."""

    @property
    def spec(self) -> str:
        """The corpus's name, as configured."""
        ...

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Streams (source, target)."""
        ...

    def num_pairs(self, *, budget: int = sys.maxsize) -> int:
        """Counts the pairs; raises DataError if that needs more bytes of a file."""
        ...

    def fingerprint(self) -> str:
        """Returns a hash of the content."""
        ...
