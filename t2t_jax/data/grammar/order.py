"""An order for the phrasebook that is counted, not drawn: no generator, no state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from math import isqrt

_ROUNDS = 4
_MASK = (1 << 64) - 1


def hashed(text: str) -> int:
    """Hashes text to 64 bits, alike on every machine and in every process.

    Example:
      >>> hashed("phrasebook") < 2**64
      True
    """
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def permutation(size: int, key: str) -> Iterator[int]:
    """Yields 0 to `size` - 1, each once, in an order that the key decides.

    A Feistel network permutes the smallest square that holds them, whatever its round
    function; numbers of the square beyond `size` are passed over.

    Args:
      size: how many numbers, at least 1.
      key: any text.

    Returns:
      The numbers, one by one, in constant memory.

    Example:
      >>> sorted(permutation(5, "a key"))
      [0, 1, 2, 3, 4]
    """
    side = isqrt(size - 1) + 1
    keys = [hashed(f"{key}|{number}") for number in range(_ROUNDS)]
    for start in range(side * side):
        left, right = divmod(start, side)
        for round_key in keys:
            mixed = (right + round_key) * 0x9E3779B97F4A7C15 & _MASK
            mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 & _MASK
            left, right = right, (left + (mixed >> 32)) % side
        place = left * side + right
        if place < size:
            yield place
