"""Choices for the phrasebook that a key spells: no generator, no state.

The words of a sentence are the digits of a number, and the number is a hash of the
sentence's key. So nothing depends on `hash`, on the order of sets, or on a random
number generator's version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def hashed(text: str) -> int:
    """Hashes text to 64 bits, alike on every machine and in every process.

    Example:
      >>> hashed("phrasebook") < 2**64
      True
    """
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class Choices:
    """A sequence of choices, the same for the same key.

    Example:
      >>> Choices("a key").below(6) == Choices("a key").below(6)
      True
    """

    def __init__(self, key: str):
        digest = hashlib.blake2b(key.encode(), digest_size=64).digest()
        self._rest = int.from_bytes(digest, "big")

    def below(self, number: int) -> int:
        """Chooses one of 0 to `number` - 1, each alike."""
        self._rest, choice = divmod(self._rest, number)
        return choice

    def of(self, items: Sequence[_Item]) -> _Item:
        """Chooses one of the items, as often as it is among them."""
        return items[self.below(len(items))]


def by_turns(weighted: Iterable[tuple[_Item, int]]) -> tuple[_Item, ...]:
    """Spreads items over one round, each as often as it weighs, evenly.

    Example:
      >>> by_turns([("a", 3), ("b", 1)])
      ('a', 'a', 'b', 'a')
    """
    places = [
        ((turn + 0.5) / weight, which, item)
        for which, (item, weight) in enumerate(weighted)
        for turn in range(weight)
    ]
    return tuple(item for _, _, item in sorted(places, key=lambda place: place[:2]))
