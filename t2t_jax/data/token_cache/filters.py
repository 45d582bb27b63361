"""Filters of sentence pairs; a dropped pair counts for the first reason that applies.

Paper: §5.1 mentions no filter but the length of a batch.
Departs: web corpora hold lines that are empty, very long, of unequal length, copied
  from the other side, or repeated; all filters but the first two are off by default.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_jax.data.arrays import GOLDEN, Flags, Hashes, Integers
from t2t_jax.data.config import DataConfig

REASONS = ("empty", "too_long", "ratio", "copies", "duplicates")
"""Reasons to drop a pair, in the order of the checks."""

KEPT = len(REASONS)

_DUPLICATE = REASONS.index("duplicates")


def drop_reasons(
    source_lengths: Integers,
    target_lengths: Integers,
    *,
    copies: Flags,
    config: DataConfig,
) -> npt.NDArray[np.int8]:
    """Returns [P] why each pair is dropped: an index into `REASONS`, or `KEPT`.

    Duplicates are not considered.

    Args:
      source_lengths: [P] tokens of each source, eos included.
      target_lengths: [P] tokens of each target, eos included.
      copies: [P] whether the two sides are the same text.

    Example:
      >>> source, target = np.array([1, 9, 7, 3]), np.array([4, 4, 3, 3])
      >>> copies = np.array([False, False, False, True])
      >>> config = DataConfig(max_length=8, max_length_ratio=2.5, drop_copies=True)
      >>> found = drop_reasons(source, target, copies=copies, config=config)
      >>> [REASONS[reason] for reason in found]
      ['empty', 'too_long', 'ratio', 'copies']
    """
    longer = np.maximum(source_lengths, target_lengths)
    shorter = np.minimum(source_lengths, target_lengths)
    ratio = config.max_length_ratio or np.inf
    applies = [
        shorter <= 1,
        longer > config.max_length,
        longer - 1 > ratio * np.maximum(shorter - 1, 1),
        copies & config.drop_copies,
    ]
    return np.select(applies, list(range(len(applies))), KEPT).astype(np.int8)


def hash_strings(strings: Iterable[str]) -> Hashes:
    """Hashes strings to 64 bits."""
    digests = (
        hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for one in strings
    )
    return np.frombuffer(b"".join(digests), "<u8")


def text_hashes(lines: Iterable[str]) -> Hashes:
    """Hashes lines, without surrounding blanks, to 64 bits."""
    return hash_strings(line.strip() for line in lines)


def pair_hashes(source_hashes: Hashes, target_hashes: Hashes) -> Hashes:
    """Combines the hashes of both sides; not symmetric."""
    # An odd factor (golden ratio) is a bijection modulo 2^64.
    return source_hashes * GOLDEN + target_hashes


class DuplicateFilter:
    """A set of 64-bit hashes, 8 bytes each, that detects repetitions.

    Hashes are kept in sorted runs, each at least twice as long as the next, so there
    are few runs to search and each hash moves only when its run doubles.

    Example:
      >>> seen = DuplicateFilter()
      >>> seen.is_new(np.array([7, 3, 7], np.uint64)).tolist()
      [True, True, False]
      >>> seen.is_new(np.array([5, 3], np.uint64)).tolist()
      [True, False]
    """

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def is_new(self, hashes: Hashes) -> Flags:
        """Returns [P] which hashes [P] occur for the first time, and adds them."""
        values, first_indices = np.unique(hashes, return_index=True)
        new = self._unseen(values)
        self._add(values[new])
        answer = np.zeros(len(hashes), np.bool_)
        answer[first_indices[new]] = True
        return answer

    def add(self, hashes: Hashes, *, most: int) -> int:
        """Adds at most `most` new hashes; returns how many were added."""
        new = hashes[self._unseen(hashes)][:most]
        self._add(new)
        return len(new)

    def values(self) -> Hashes:
        """Returns all hashes, sorted."""
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *self._runs]))

    def _unseen(self, values: Hashes) -> Flags:
        new = np.ones(len(values), np.bool_)
        for run in self._runs:
            indices = np.minimum(np.searchsorted(run, values), len(run) - 1)
            new &= run[indices] != values
        return new

    def _add(self, run: Hashes) -> None:
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            # numpy's stable sort merges sorted runs in linear time.
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)


def mark_duplicates(
    reasons: npt.NDArray[np.int8], hashes: Hashes, seen: DuplicateFilter
) -> npt.NDArray[Any]:
    """Returns the reasons with kept pairs that occurred before as duplicates.

    Args:
      reasons: [P] from `drop_reasons`.
      hashes: [K] of the kept pairs, in order.
      seen: the hashes of all earlier pairs; new ones are added.
    """
    marked = reasons.copy()
    marked[reasons == KEPT] = np.where(seen.is_new(hashes), KEPT, _DUPLICATE)
    return marked
