"""Deterministic choices from a hash of a key, without a generator or state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def hashed(text: str) -> int:
    """Hashes text to 64 bits, the same on every machine and in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class Choices:
    """A deterministic sequence of choices for a key."""

    def __init__(self, key: str):
        digest = hashlib.blake2b(key.encode(), digest_size=64).digest()
        self._rest = int.from_bytes(digest, "big")

    def below(self, number: int) -> int:
        """Chooses uniformly from 0 to `number` - 1."""
        self._rest, choice = divmod(self._rest, number)
        return choice

    def of(self, items: Sequence[_Item]) -> _Item:
        """Chooses one of the items uniformly; repeated items are more frequent."""
        return items[self.below(len(items))]


def interleave(weighted: Iterable[tuple[_Item, int]]) -> tuple[_Item, ...]:
    """Interleaves items evenly, each as often as its weight.

    Example:
      >>> interleave([("a", 3), ("b", 1)])
      ('a', 'a', 'b', 'a')
    """
    positions = [
        ((number + 0.5) / weight, index, item)
        for index, (item, weight) in enumerate(weighted)
        for number in range(weight)
    ]
    return tuple(item for *_, item in sorted(positions, key=lambda item: item[:2]))
