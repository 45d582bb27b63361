"""What is found in a pair of text, and the pairs of a corpus on disk."""

from __future__ import annotations

import struct
import tempfile
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

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

_BITS = {kind: 1 << number for number, kind in enumerate(KINDS)}


def bits_of(*kinds: str) -> int:
    """Returns kinds as the bits of an integer."""
    return sum(_BITS[kind] for kind in set(kinds))


def kinds_of(bits: int) -> list[str]:
    """Returns the kinds of an integer's bits.

    Example:
      >>> kinds_of(bits_of("script", "copy"))
      ['copy', 'script']
    """
    return [kind for kind, bit in _BITS.items() if bits & bit]


class Pair(NamedTuple):
    """A pair of text."""

    source: str
    target: str


class PairFile:
    """Pairs in a temporary file, with random access; 8 bytes of memory each."""

    _LENGTHS = struct.Struct("<II")

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()
        self._offsets = array("q")
        self._end = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, pair: Pair) -> None:
        """Appends a pair.

        Raises:
          OSError: the disk of temporary files is full.
        """
        source, target = (side.encode("utf-8", "surrogatepass") for side in pair)
        self._offsets.append(self._end)
        head = self._LENGTHS.pack(len(source), len(target))
        self._end += self._file.write(head + source + target)

    def __getitem__(self, number: int) -> Pair:
        self._file.seek(self._offsets[number])
        lengths = self._LENGTHS.unpack(self._file.read(self._LENGTHS.size))
        source, target = (
            self._file.read(length).decode("utf-8", "surrogatepass")
            for length in lengths
        )
        return Pair(source, target)

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
    if counts.total() < 2:
        return ""
    return counts.most_common(1)[0][0]


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    script = unicodedata.name(letter, "UNKNOWN").partition(" ")[0].partition("-")[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA") else script
