"""Packed rows, dealt into batches of one shape or of a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from t2t_jax.data.batching.packing import Integers, pack

WINDOW_PAIRS = 20_000

Shape: TypeAlias = tuple[int, int]
Rows: TypeAlias = tuple[Integers, Integers]
"""[P] pairs, and [P] the row of each, ascending from 0 without gaps."""


def packed_batches(
    lengths: tuple[Integers, Integers],
    order: Integers,
    *,
    shapes: Sequence[Shape],
    chance: np.random.Generator | None,
) -> Iterator[tuple[Rows, Shape]]:
    """Packs pairs window by window, and deals the rows into batches.

    A window is 20,000 pairs, so the first batch is ready long before the epoch is
    planned. Pairs that find no room in it, and rows that do not fill a batch, wait for
    the next window.

    Args:
      lengths: [N] tokens of each pair's source side, and [N] of its target side.
      order: numbers of pairs, in the order in which windows take them.
      shapes: (rows, slots of a row on each side) of the batches, short rows first.
      chance: shuffles the rows of a window, and the batches that it fills; None leaves
        rows as they are packed, and batches of short rows first.

    Yields:
      A batch's pairs and rows, and its shape. The last batch of a shape may have fewer
      rows.

    Example:
      >>> lengths = np.array([5, 1, 2, 3, 2])
      >>> batches = packed_batches(
      ...     (lengths, lengths), np.arange(5), shapes=[(2, 4), (1, 8)], chance=None
      ... )
      >>> [(pairs.tolist(), rows.tolist(), shape) for (pairs, rows), shape in batches]
      [([0, 3], [0, 0], (1, 8)), ([2, 4, 1], [0, 0, 1], (2, 4))]
    """
    row_lengths = [length for _, length in shapes]
    waiting = [(order[:0], order[:0]) for _ in shapes]
    for window in _windows(lengths, order, row_lengths=row_lengths, chance=chance):
        full: list[tuple[Rows, Shape]] = []
        for kind, rows in enumerate(window):
            batches, waiting[kind] = _cut(waiting[kind], rows, size=shapes[kind][0])
            full += [(batch, shapes[kind]) for batch in batches]
        turns = (
            np.arange(len(full)) if chance is None else chance.permutation(len(full))
        )
        yield from (full[turn] for turn in turns)
    for rest, shape in zip(waiting, shapes, strict=True):
        if len(rest[0]):
            yield rest, shape


def _windows(
    lengths: tuple[Integers, Integers],
    order: Integers,
    *,
    row_lengths: Sequence[int],
    chance: np.random.Generator | None,
) -> Iterator[list[Rows]]:
    """Yields the rows of each length that a window fills."""
    waiting = order[:0]
    start = 0
    while start < len(order) or len(waiting):
        pairs = np.concatenate([waiting, order[start : start + WINDOW_PAIRS]])
        start += WINDOW_PAIRS
        packed = pack(lengths[0][pairs], lengths[1][pairs], row_lengths=row_lengths)
        waiting = pairs[packed.rows < 0]
        pairs, rows = pairs[packed.rows >= 0], packed.rows[packed.rows >= 0]
        yield [
            _rows_of(packed.row_lengths == length, pairs, rows, chance=chance)
            for length in row_lengths
        ]


def _rows_of(
    wanted: Integers,
    pairs: Integers,
    rows: Integers,
    *,
    chance: np.random.Generator | None,
) -> Rows:
    """Takes some of the rows, and numbers them anew."""
    number = int(np.count_nonzero(wanted))
    renumbered = np.zeros(len(wanted), np.int32)
    renumbered[wanted] = (
        np.arange(number) if chance is None else chance.permutation(number)
    )
    taken = wanted[rows]
    pairs, rows = pairs[taken], renumbered[rows[taken]]
    by_row = np.argsort(rows, kind="stable")
    return pairs[by_row], rows[by_row]


def _cut(waiting: Rows, more: Rows, *, size: int) -> tuple[list[Rows], Rows]:
    """Cuts rows into batches of so many; returns those, and the rows that are left."""
    first = int(waiting[1][-1]) + 1 if len(waiting[1]) else 0
    pairs = np.concatenate([waiting[0], more[0]])
    rows = np.concatenate([waiting[1], more[1] + first])
    number = (int(rows[-1]) + 1) // size if len(rows) else 0
    cuts = np.searchsorted(rows, size * np.arange(number + 1))
    batches = [
        (pairs[start:stop], rows[start:stop] - batch * size)
        for batch, (start, stop) in enumerate(pairwise(cuts))
    ]
    return batches, (pairs[cuts[-1] :], rows[cuts[-1] :] - number * size)
