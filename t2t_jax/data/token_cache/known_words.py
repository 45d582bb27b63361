"""The source words of a training text, to detect input that is unlike it.

A word is a case-folded run of letters; digits and punctuation are not words. In scripts
written without spaces (Chinese, Japanese, Thai and others) each letter counts as a
word. Words are kept as 64-bit hashes in one sorted array.
"""

from __future__ import annotations

import contextlib
import io
import re
import tokenize
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from t2t_jax.data.arrays import Hashes
from t2t_jax.data.token_cache.filters import (
    SPACELESS,
    DuplicateFilter,
    hash_strings,
    lacks,
)

FILE = "known_words.npy"
"""The file of these hashes in a run or a model."""

MAX_WORDS = 8_000_000
"""Words that are kept, 64 MB; later ones, mostly rare, are left out."""

_HEADER_BYTES = 1 << 10
# Vowel signs and points of Hebrew, Arabic and Indic scripts, which are not letters but
# occur inside words; accents that NFKC does not compose.
_SIGN = (
    r"(?:[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]"
    r"|(?!\d)[\u0900-\u0963\u0970-\u0dff])"
)
_RUN = re.compile(rf"[^\W\d_]+(?:{_SIGN}[^\W\d_]*)*")
_ASCII_RUN = re.compile("[a-z]+")
_HAS_SPACELESS = re.compile(f"[{SPACELESS}]")
_PART = re.compile(f"[{SPACELESS}]|[^{SPACELESS}]+")


def words_of(text: str) -> list[str]:
    """Returns the words of a text, in order, repetitions included.

    Example:
      >>> words_of("Don't PANIC: 42 Straßen!")
      ['don', 't', 'panic', 'strassen']
      >>> words_of("猫が3匹 ok")
      ['猫', 'が', '匹', 'ok']
    """
    if text.isascii():
        return _ASCII_RUN.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold()
    runs = _RUN.findall(folded)
    if not _HAS_SPACELESS.search(folded):
        return runs
    return list(chain.from_iterable(map(_PART.findall, runs)))


def distinct_hashes(lines: Iterable[str]) -> Hashes:
    """Returns the unique hashes of the words of some lines, sorted."""
    return np.unique(hash_strings(set(words_of("\n".join(lines)))))


def merge_hashes(parts: Iterable[Hashes], *, most: int = MAX_WORDS) -> Hashes:
    """Merges sorted hashes of consecutive pieces of a text, at most `most`.

    Example:
      >>> some = [np.array(part, np.uint64) for part in ([3, 7], [1, 3], [5])]
      >>> merge_hashes(some, most=3).tolist()
      [1, 3, 7]
    """
    seen, left = DuplicateFilter(), most
    for part in parts:
        if not left:
            break
        left -= seen.add(part, most=left)
    return seen.values()


class KnownWords:
    """The source words of a training text.

    Example:
      >>> known = KnownWords(distinct_hashes(["The old teacher reads."]))
      >>> known.unseen_shares(["the OLD dog", "42!"])
      [0.3333333333333333, 0.0]
    """

    def __init__(self, hashes: Hashes):
        self.hashes = hashes

    def unseen_shares(self, lines: Sequence[str]) -> list[float]:
        """Returns the share of each line's words that the training text lacks, or 0."""
        words = [words_of(line) for line in lines]
        unseen = lacks(self.hashes, hash_strings(chain.from_iterable(words)))
        spans = pairwise(np.cumsum([0, *map(len, words)]).tolist())
        return [int(unseen[a:b].sum()) / max(b - a, 1) for a, b in spans]

    def to_bytes(self) -> bytes:
        """Returns the content of the file, in NumPy's format."""
        content = io.BytesIO()
        np.save(content, self.hashes.astype("<u8"), allow_pickle=False)
        return content.getvalue()

    @classmethod
    def load(cls, directory: Path) -> KnownWords | None:
        """Loads the words of a run or a model; None if they are missing or invalid."""
        path = directory / FILE
        with contextlib.suppress(OSError, ValueError, EOFError, tokenize.TokenError):
            most = 8 * MAX_WORDS + _HEADER_BYTES
            if not path.is_file() or path.stat().st_size > most:
                return None
            # Mapped, so that a wrong size in the header allocates no memory; copied,
            # as truncating a mapped file would kill the process.
            hashes = np.load(path, mmap_mode="r", allow_pickle=False)
            if hashes.dtype == np.dtype("<u8") and hashes.ndim == 1:
                return cls(np.array(hashes))
        return None
