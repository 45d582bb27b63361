"""What is found in a pair of text, and what pairs are compared with."""

from __future__ import annotations

import tempfile
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

KINDS = {
    "unscored": "a side is empty, or longer than data.max_length",
    "copy": "the same text on both sides",
    "duplicate": "the pair occurs before in the corpus",
    "length_ratio": "the sides differ in length far more than usual",
    "script": "a side is in another script than most of its corpus",
    "language": "of high loss, and a side is spelt unlike the others of its language",
    "misaligned": "of high loss, and the source hardly helps to predict the target",
    "rare_characters": "a character that almost no other pair has",
    "unknown_tokens": "a token that the vocabulary does not have",
}
"""Kind of a finding -> what it means, in the order of the reports."""

_BINS = 1 << 18
_SMOOTHING, _ALPHABET = 0.1, 64
_FACTORS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)


class Pair(NamedTuple):
    """A pair of text."""

    source: str
    target: str


class PairFile:
    """Pairs in a temporary file, with random access; 16 bytes of memory each."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()
        self._ends = array("q", [0])  # of each side

    def __len__(self) -> int:
        return len(self._ends) // 2

    def add(self, pair: Pair) -> None:
        """Appends a pair.

        Raises:
          OSError: the disk of temporary files is full.
        """
        for side in pair:
            size = self._file.write(side.encode("utf-8", "surrogatepass"))
            self._ends.append(self._ends[-1] + size)

    def __getitem__(self, number: int) -> Pair:
        start, middle, end = self._ends[2 * number : 2 * number + 3]
        self._file.seek(start)
        content = self._file.read(end - start)
        sides = content[: middle - start], content[middle - start :]
        return Pair(*(side.decode("utf-8", "surrogatepass") for side in sides))

    def __iter__(self) -> Iterator[Pair]:
        return (self[number] for number in range(len(self)))

    def close(self) -> None:
        """Removes the file."""
        self._file.close()


def script_of(line: str) -> str:
    """Returns the script of most letters of a line; "" if it has fewer than two.

    A script is the first word of the names of its characters. The scripts of Japanese
    are one.

    Example:
      >>> [script_of(line) for line in ("A dog.", "Собака", "犬がほえる", "12")]
      ['LATIN', 'CYRILLIC', 'CJK', '']
    """
    counts = Counter(_script(letter) for letter in line if letter.isalpha())
    return counts.most_common(1)[0][0] if counts.total() > 1 else ""


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    script = unicodedata.name(letter, "UNKNOWN").partition(" ")[0].partition("-")[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA") else script


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
        points[i : len(points) - 2 + i] * np.uint64(f) for i, f in enumerate(_FACTORS)
    )
    bigrams = first ^ second
    return _hash(bigrams), _hash(bigrams ^ third)


def _hash(codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    # The high bits of a product depend on all bits of its factors.
    mixed = (codes * np.uint64(_FACTORS[0])) >> np.uint64(20)
    return mixed.astype(np.int64) % _BINS
