"""The epoch's plan: which pairs stand in which row of which batch.

Paper: §5.1, batches of about 25,000 source and 25,000 target tokens.
Departs: rows are packed with several pairs; see `packing`.

The plan is a pure function of the lengths, the seed and the epoch. It is made in
windows of 20,000 pairs, so the first batch is ready at once, and a batch in mid-epoch
is found by planning, and not reading, what comes before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from t2t_jax.data.packing import Integers, pack

WINDOW_PAIRS = 20_000


class PlannedBatch(NamedTuple):
    """One batch, as numbers of pairs.

    Attributes:
      pairs: [P] numbers of pairs in the corpus, row by row.
      rows: [P] the row of each in the batch, ascending from 0 without gaps.
    """

    pairs: Integers
    rows: Integers

    @property
    def num_rows(self) -> int:
        """Rows that hold something."""
        return int(self.rows[-1]) + 1


def plan_epoch(
    source_lengths: Integers,
    target_lengths: Integers,
    *,
    rows_per_batch: int,
    row_length: int,
    seed: int,
    epoch: int,
) -> Iterator[PlannedBatch]:
    """Plans one pass in an order that is the epoch's own.

    Args:
      source_lengths: [N] tokens of each pair's source side, eos included.
      target_lengths: [N] tokens of each pair's target side, eos included.
      rows_per_batch: rows of every batch; the last has what is left.
      row_length: slots of a row, on each side.
      seed: at least 0; the run's.
      epoch: at least 0; another epoch is another order.

    Yields:
      Batches that hold every pair exactly once. Pairs are permuted, packed in windows,
      and the window's rows permuted again, so that batches are not sorted by length.

    Example:
      >>> lengths = np.array([3, 5, 4, 2, 1, 1])
      >>> plan = plan_epoch(
      ...     lengths, lengths, rows_per_batch=1, row_length=8, seed=7, epoch=0
      ... )
      >>> [sorted(batch.pairs.tolist()) for batch in plan]
      [[1, 3, 4], [0, 2, 5]]
    """
    chance = np.random.Generator(
        np.random.Philox(np.random.SeedSequence([seed, epoch]))
    )
    lengths = (source_lengths, target_lengths)
    order = chance.permutation(np.arange(len(source_lengths), dtype=np.int32))
    windows = _windows(lengths, order, row_length=row_length, chance=chance)
    return _batches(windows, rows_per_batch)


def plan_pass(
    source_lengths: Integers,
    target_lengths: Integers,
    *,
    rows_per_batch: int,
    row_length: int,
) -> Iterator[PlannedBatch]:
    """Plans one pass without chance, for evaluation.

    Args:
      source_lengths: [N] tokens of each pair's source side, eos included.
      target_lengths: [N] tokens of each pair's target side, eos included.
      rows_per_batch: rows of every batch; the last has what is left.
      row_length: slots of a row, on each side.

    Yields:
      Batches that hold every pair exactly once.
    """
    lengths = (source_lengths, target_lengths)
    order = np.arange(len(source_lengths), dtype=np.int32)
    windows = _windows(lengths, order, row_length=row_length, chance=None)
    return _batches(windows, rows_per_batch)


def _windows(
    lengths: tuple[Integers, Integers],
    order: Integers,
    *,
    row_length: int,
    chance: np.random.Generator | None,
) -> Iterator[tuple[Integers, Integers]]:
    """Yields (pairs, rows) of each window, both sorted by row, rows from 0."""
    waiting = order[:0]
    start = 0
    while start < len(order) or len(waiting):
        pairs = np.concatenate([waiting, order[start : start + WINDOW_PAIRS]])
        start += WINDOW_PAIRS
        rows = pack(lengths[0][pairs], lengths[1][pairs], row_length=row_length)
        waiting = pairs[rows < 0]
        pairs, rows = pairs[rows >= 0], rows[rows >= 0]
        if chance is not None:
            rows = chance.permutation(rows.max() + 1)[rows]
        by_row = np.argsort(rows, kind="stable")
        yield pairs[by_row], rows[by_row]


def _batches(
    windows: Iterator[tuple[Integers, Integers]], rows_per_batch: int
) -> Iterator[PlannedBatch]:
    """Cuts windows into batches; rows that do not fill one wait for the next window."""
    waiting_pairs: list[Integers] = []
    waiting_rows: list[Integers] = []
    num_waiting = 0
    for pairs, rows in windows:
        waiting_pairs.append(pairs)
        waiting_rows.append(rows + num_waiting)
        num_waiting += int(rows[-1]) + 1
        if num_waiting < rows_per_batch:
            continue
        pairs, rows = np.concatenate(waiting_pairs), np.concatenate(waiting_rows)
        num_batches, num_waiting = divmod(num_waiting, rows_per_batch)
        cuts = np.searchsorted(rows, rows_per_batch * np.arange(num_batches + 1))
        for batch, (start, stop) in enumerate(pairwise(cuts)):
            first = batch * rows_per_batch
            yield PlannedBatch(pairs[start:stop], rows[start:stop] - first)
        waiting_pairs = [pairs[cuts[-1] :]]
        waiting_rows = [rows[cuts[-1] :] - num_batches * rows_per_batch]
    if num_waiting:
        yield PlannedBatch(np.concatenate(waiting_pairs), np.concatenate(waiting_rows))
