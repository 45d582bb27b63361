"""Batches pairs of similar length into a few static shapes. NumPy only.

Unlike a search, scoring computes the logits of all positions at once, so the size of a
batch is limited by their bytes too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS, SpecialIds

LOGITS_BYTES = 256 * 2**20
"""Limit of a device's float32 logits [B, T, V], 256 MiB."""

# 16, 32, … 1,024: with the length of all that is longer, 8 shapes.
_LENGTHS = tuple(16 << doublings for doublings in range(7))
_LOGIT_BYTES = 4


class PairBatch(NamedTuple):
    """Pairs of similar length; both sides have the same number of slots, S = T.

    Attributes:
      source_BxS: [B, S] int32, each row a source's subwords, eos, pad; rows beyond the
        pairs are only pad.
      target_outputs_BxT: [B, T] int32, their targets likewise.
    """

    source_BxS: npt.NDArray[np.int32]
    target_outputs_BxT: npt.NDArray[np.int32]
    indices: tuple[int, ...]


def pair_lengths(longest: int, *, max_length: int | None = None) -> tuple[int, ...]:
    """Chooses the lengths of batches, at most 8, in ascending order.

    They double from 16 to 1,024; everything longer shares the one length that holds
    it, so that a single long line does not lengthen others.

    Args:
      max_length: slots that the model can read; None for no limit.

    Example:
      >>> pair_lengths(50)
      (16, 32, 64, 128, 256, 512, 1024)
      >>> pair_lengths(3000, max_length=4000)[-2:], pair_lengths(50, max_length=50)
      ((1024, 4000), (16, 32, 50))
    """
    lengths = _LENGTHS
    if longest > _LENGTHS[-1]:
        lengths = (*_LENGTHS, 1 << (longest - 1).bit_length())
    if max_length is None:
        return lengths
    return tuple(dict.fromkeys(min(length, max_length) for length in lengths))


def pair_batches(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    config: DecodingConfig,
    *,
    vocab_size: int,
    max_length: int | None = None,
    devices: int = 1,
    ids: SpecialIds = DEFAULT_IDS,
) -> Iterator[PairBatch]:
    """Batches pairs of similar length, the longest first.

    A pair is as long as its longer side. A batch takes as many rows on each device as
    `config.tokens_per_batch` and `LOGITS_BYTES` allow at its length, but at least one,
    and is filled with the next pairs, shorter ones included: only the last batch has
    empty rows. Where there are fewer pairs than rows, a device's rows are the next
    power of 2 that holds them.

    Args:
      pairs: subwords of source and target, without eos.
      vocab_size: V, logits of each slot.
      max_length: slots that the model can read; no side with its eos may be longer.

    Example:
      >>> pairs = [([5], [6]), ([5], [7, 8]), ([5, 6, 7], [])]
      >>> [b.indices for b in pair_batches(pairs, DecodingConfig(), vocab_size=11)]
      [(2, 1, 0)]
    """
    needed = np.array([1 + max(map(len, pair)) for pair in pairs], np.int64)
    longest_first = np.argsort(-needed, kind="stable")
    lengths = pair_lengths(int(needed.max(initial=1)), max_length=max_length)
    slots = min(config.tokens_per_batch, LOGITS_BYTES // (_LOGIT_BYTES * vocab_size))
    share = -(-len(pairs) // devices)
    max_rows = 1 << max(0, share - 1).bit_length()
    start = 0
    while start < len(pairs):
        length = next(n for n in lengths if n >= needed[longest_first[start]])
        rows = devices * min(max(1, slots // length), max_rows)
        indices = tuple(int(index) for index in longest_first[start : start + rows])
        sides = np.full((2, rows, length), ids.pad, np.int32)
        for row, index in enumerate(indices):
            for side, tokens in zip(sides, pairs[index], strict=True):
                side[row, : len(tokens) + 1] = (*tokens, ids.eos)
        yield PairBatch(sides[0], sides[1], indices)
        start += rows
