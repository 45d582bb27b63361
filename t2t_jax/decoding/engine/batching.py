"""Batches sentences, or pairs, of similar length into a few static shapes. NumPy only.

Unlike a search, scoring computes the logits of all positions at once, so the size of a
batch of pairs is limited by their bytes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.types import EOS, PAD

LOGITS_BYTES = 256 * 2**20
"""Limit of a device's float32 logits [B, T, V] of pairs, 256 MiB."""

# 16, 32, … 1,024: with the length of all that is longer, 8 shapes.
_PAIR_LENGTHS = tuple(16 << doublings for doublings in range(7))
_LOGIT_BYTES = 4
_MAX_SHAPES = 8
_MIN_LENGTH = 16


class SourceBatch(NamedTuple):
    """Sentences of similar length.

    Attributes:
      source_BxS: [B, S] int32, each row a sentence's subwords, eos, pad; rows beyond
        the sentences are only pad.
      indices: the sentence of each of the first rows.
    """

    source_BxS: npt.NDArray[np.int32]
    indices: tuple[int, ...]


def source_lengths(max_source_length: int) -> tuple[int, ...]:
    """Chooses the lengths S of batches, in ascending order.

    Halves the longest until 16 or 8 lengths are reached, so that at most about half of
    a row is pad and few programs are compiled.

    Example:
      >>> source_lengths(200)
      (25, 50, 100, 200)
    """
    lengths = [max_source_length]
    while len(lengths) < _MAX_SHAPES and (lengths[-1] + 1) // 2 >= _MIN_LENGTH:
        lengths.append((lengths[-1] + 1) // 2)
    return tuple(reversed(lengths))


def max_batch_rows(config: DecodingConfig) -> int:
    """Returns the rows of a device's largest batch, one of short sentences."""
    return _rows_in_memory(config, source_lengths(config.max_source_length)[0])


def _rows_in_memory(config: DecodingConfig, length: int) -> int:
    """Returns the rows of this source length that `tokens_per_batch` allows."""
    # With a max_length_ratio below 1, sources are longer than outputs.
    return config.tokens_per_batch // max(length, config.longest_output(length))


def source_batches(
    sources: Sequence[Sequence[int]],
    config: DecodingConfig,
    *,
    devices: int = 1,
    row_growth: int = 2,
    fit: Callable[[int, int], int] = lambda rows, length: rows,
) -> Iterator[SourceBatch]:
    """Batches sentences of similar length, the longest first.

    A batch takes as many rows on each device as `config.tokens_per_batch` allows at its
    length, so its shape depends on nothing else. It starts with the longest sentence
    left and is filled with the next ones, shorter ones included: only the last
    batch has empty rows. Where there are fewer sentences than rows, a device's rows are
    the next power of `row_growth` that holds them.

    Args:
      sources: sentences as subwords, without eos, each of at most
        `config.max_source_length - 1`.
      row_growth: 2 adds the fewest empty rows; more gives fewer shapes over calls of
        few sentences each.
      fit: cuts the rows of each device, given them and the length of the sources.

    Example:
      >>> config = DecodingConfig(max_source_length=16)
      >>> sources = [[5], [6, 7], [8]]
      >>> [b.indices for b in source_batches(sources, config)]
      [(1, 0, 2)]
    """
    for rows, length, indices in _by_length(
        [len(source) + 1 for source in sources],
        source_lengths(config.max_source_length),
        lambda most, length: fit(min(_rows_in_memory(config, length), most), length),
        devices=devices,
        row_growth=row_growth,
    ):
        sentences = [sources[index] for index in indices]
        yield SourceBatch(padded_rows(sentences, rows, length), indices)


def _by_length(
    needed: Sequence[int],
    lengths: Sequence[int],
    rows_of: Callable[[int, int], int],
    *,
    devices: int,
    row_growth: int = 2,
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yields the rows, slots and members of batches, the longest first.

    Args:
      needed: slots of each member.
      lengths: of batches, in ascending order.
      rows_of: of each device, given the most that are useful and the length.
    """
    longest_first = np.argsort(-np.array(needed, np.int64), kind="stable").tolist()
    most = 1
    while most * devices < len(needed):
        most *= row_growth
    start = 0
    while start < len(longest_first):
        length = next(n for n in lengths if n >= needed[longest_first[start]])
        rows = devices * rows_of(most, length)
        yield rows, length, tuple(longest_first[start : start + rows])
        start += rows


def padded_rows(
    sentences: Sequence[Sequence[int]], rows: int, length: int
) -> npt.NDArray[np.int32]:
    """Makes [rows, length] of sentences, each with its eos."""
    padded = np.full((rows, length), PAD, np.int32)
    for row, tokens in zip(padded, sentences, strict=False):
        row[: len(tokens) + 1] = (*tokens, EOS)
    return padded


class PairBatch(NamedTuple):
    """Pairs of similar length; both sides have the same number of slots, S = T.

    Attributes:
      source_BxS: [B, S] int32, each row a source's subwords, eos, pad; rows beyond the
        pairs are only pad.
      target_outputs_BxT: [B, T] int32, the targets, padded the same way.
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
    lengths = _PAIR_LENGTHS
    if longest > _PAIR_LENGTHS[-1]:
        lengths = (*_PAIR_LENGTHS, 1 << (longest - 1).bit_length())
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
    needed = [1 + max(map(len, pair)) for pair in pairs]
    slots = min(config.tokens_per_batch, LOGITS_BYTES // (_LOGIT_BYTES * vocab_size))
    for rows, length, indices in _by_length(
        needed,
        pair_lengths(max(needed, default=1), max_length=max_length),
        lambda most, length: min(max(1, slots // length), most),
        devices=devices,
    ):
        sides = zip(*(pairs[index] for index in indices), strict=True)
        source_BxS, target_BxT = (padded_rows(side, rows, length) for side in sides)
        yield PairBatch(source_BxS, target_BxT, indices)
