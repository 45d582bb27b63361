"""Character trigrams of a corpus, to find lines that are unlike the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_BINS = 1 << 18
_SMOOTHING, _ALPHABET = 0.1, 64
_FACTORS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)


class Trigrams:
    """Counts of the trigrams of many lines, hashed; 4 MB.

    Example:
      >>> german = Trigrams()
      >>> lines = ["der Hund bellt", "die Hunde bellen", "der Bund der Hunde"]
      >>> german.add(lines)
      >>> likely, unlikely = german.scores(["die Hunde bellen", "the dogs bark now"])
      >>> bool(likely > unlikely + 1)
      True
    """

    def __init__(self) -> None:
        self._trigrams = np.zeros(_BINS, np.int64)
        self._bigrams = np.zeros(_BINS, np.int64)

    def add(self, lines: Sequence[str]) -> None:
        """Counts the trigrams of lines."""
        for line in lines:
            bigrams, trigrams = _codes(line)
            np.add.at(self._bigrams, bigrams, 1)
            np.add.at(self._trigrams, trigrams, 1)

    def scores(
        self, lines: Sequence[str], *, are_counted: bool = True
    ) -> npt.NDArray[np.float64]:
        """Returns [P] the mean log-probability of a character of each line.

        Args:
          are_counted: whether each line was added, and is to be left out again.
        """
        found = np.zeros(len(lines))
        for number, line in enumerate(lines):
            bigrams, trigrams = _codes(line)
            own = int(are_counted)
            numerator = np.maximum(self._trigrams[trigrams] - own, 0) + _SMOOTHING
            denominator = np.maximum(self._bigrams[bigrams] - own, 0)
            probability = numerator / (denominator + _SMOOTHING * _ALPHABET)
            found[number] = np.log(probability).mean()
        return found


def _codes(line: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns the hashes of the bigrams before each character, and its trigrams."""
    text = f"  {line.strip().lower()} ".encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(text, "<u4").astype(np.uint64)
    first, second, third = (
        points[i : len(points) - 2 + i] * np.uint64(factor)
        for i, factor in enumerate(_FACTORS)
    )
    bigrams = first ^ second
    return _hash(bigrams), _hash(bigrams ^ third)


def _hash(codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    # The high bits of a product depend on all bits of its factors.
    mixed = (codes * np.uint64(_FACTORS[0])) >> np.uint64(20)
    return mixed.astype(np.int64) % _BINS
