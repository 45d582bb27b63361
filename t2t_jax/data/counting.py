"""Counts the pairs of a corpus without encoding it, within bounds."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.corpora import (
    Corpus,
    PhrasebookCorpus,
    SliceCorpus,
    TextCorpus,
    open_corpus,
)
from t2t_jax.data.lines import open_bytes
from t2t_jax.errors import InputMissingError

_BLOCK = 1 << 22
_BUDGET = 2_000_000_000


class PairCount(NamedTuple):
    """How large a corpus is.

    Attributes:
      spec: its name, as configured.
      pairs: number of pairs; None where it is not known.
      note: why it is not known, or what is wrong with it; "" if nothing is.
    """

    spec: str
    pairs: int | None
    note: str


def count_pairs(spec: str, *, key: str, budget: int = _BUDGET) -> PairCount:
    """Counts the pairs of the corpus that a configuration names.

    Nothing is decoded or checked but that both sides have as many lines.

    Args:
      spec: as for `open_corpus`.
      key: the configuration key it comes from.
      budget: bytes of text, unpacked, that may be read of each side.

    Returns:
      The number, or why there is none: a corpus that is not there is no mistake.

    Raises:
      ConfigError: the spec cannot be understood.

    Example:
      >>> count_pairs("phrasebook:dev:500[7:]", key="data.dev")
      PairCount(spec='phrasebook:dev:500[7:]', pairs=493, note='')
    """
    if not spec:
        return PairCount(spec, None, f"config.{key} names no corpus.")
    try:
        corpus = open_corpus(spec, key=key)
        return PairCount(spec, *_count(corpus, budget))
    except InputMissingError as error:
        return PairCount(spec, None, "\n".join(error.problems))


def _count(corpus: Corpus, budget: int) -> tuple[int | None, str]:
    if isinstance(corpus, SliceCorpus):
        whole, note = _count(corpus.whole, budget)
        if whole is None:
            return None, note
        return max(min(whole, corpus.stop) - corpus.start, 0), note
    if isinstance(corpus, PhrasebookCorpus):
        return corpus.count, ""
    if isinstance(corpus, TextCorpus):
        return _count_lines(corpus.source, corpus.target, budget)
    return None, f"{corpus.spec} is not counted."


def _count_lines(source: Path, target: Path, budget: int) -> tuple[int | None, str]:
    counts = []
    for path in (source, target):
        lines = _lines_of(path, budget)
        if lines is None:
            return None, f"{path} holds over {budget:,} bytes, and is not counted."
        counts.append(lines)
    if counts[0] != counts[1]:
        return None, (
            f"{source} has {counts[0]:,} lines and {target} has {counts[1]:,}: the two "
            "sides must be aligned line by line."
        )
    return counts[0], ""


def _lines_of(path: Path, budget: int) -> int | None:
    """Counts the lines of a plain or .gz file, or returns None past the budget."""
    if path.stat().st_size > budget:
        return None
    lines, read, last = 0, 0, b"\n"
    try:
        with open_bytes(path) as file:
            while block := file.read(_BLOCK):
                read += len(block)
                if read > budget:
                    return None
                lines += block.count(b"\n")
                last = block[-1:]
    except (OSError, EOFError, zlib.error) as error:
        raise InputMissingError(f"{path}: cannot be read ({error}).") from error
    return lines + (last != b"\n")  # The last line may have no end.
