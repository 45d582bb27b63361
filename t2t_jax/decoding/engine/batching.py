"""Batches source sentences of similar length into a few static shapes. NumPy only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.config import DecodingConfig

_MAX_SHAPES = 8
_MIN_LENGTH = 16
_SINGLE_LINE_LENGTHS = 3


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
    shortest = source_lengths(config.max_source_length)[0]
    return _rows_in_memory(config, shortest)


def _rows_in_memory(config: DecodingConfig, length: int) -> int:
    """Returns the rows of this source length that `tokens_per_batch` allows."""
    # With a max_length_ratio below 1, sources are longer than outputs.
    return config.tokens_per_batch // max(length, config.longest_output(length))


def single_line_shapes(
    config: DecodingConfig, *, devices: int
) -> list[tuple[int, int]]:
    """Lists the batch shapes of most single lines: (rows, slots), the shortest first.

    Example:
      >>> single_line_shapes(DecodingConfig(), devices=1)
      [(1, 16), (1, 32), (1, 64)]
    """
    lengths = source_lengths(config.max_source_length)
    return [(devices, length) for length in lengths[:_SINGLE_LINE_LENGTHS]]


def source_batches(
    sources: Sequence[Sequence[int]],
    config: DecodingConfig,
    *,
    pad: int,
    eos: int,
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
      >>> [b.indices for b in source_batches(sources, config, pad=0, eos=2)]
      [(1, 0, 2)]
    """
    lengths = source_lengths(config.max_source_length)
    needed = np.array([len(source) + 1 for source in sources], np.int64)
    longest_first = np.argsort(-needed, kind="stable")
    max_rows = 1
    while max_rows * devices < len(sources):
        max_rows *= row_growth
    start = 0
    while start < len(sources):
        length = next(s for s in lengths if s >= needed[longest_first[start]])
        rows = devices * fit(min(_rows_in_memory(config, length), max_rows), length)
        indices = tuple(int(index) for index in longest_first[start : start + rows])
        source_BxS = np.full((rows, length), pad, np.int32)
        for row, index in enumerate(indices):
            source_BxS[row, : needed[index]] = (*sources[index], eos)
        yield SourceBatch(source_BxS, indices)
        start += rows
