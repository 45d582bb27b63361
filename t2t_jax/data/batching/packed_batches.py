"""Packs rows window by window and batches them by row length."""

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
    rng: np.random.Generator | None,
) -> Iterator[tuple[Rows, Shape]]:
    """Packs pairs window by window, and groups the rows into batches.

    A window is 20,000 pairs, so the first batch is ready long before the epoch is
    planned. Pairs that do not fit in it, and rows that do not fill a batch, move to the
    next window.

    Args:
      lengths: [N] tokens of each pair's source side, and [N] of its target side.
      order: indices of pairs, in the order of the windows.
      shapes: (rows, slots of a row on each side) of the batches, short rows first.
      rng: shuffles the rows of a window and its full batches; None keeps rows as packed
        and batches of short rows first.

    Yields:
      A batch's pairs and rows, and its shape. The last batch of a shape may have fewer
      rows.

    Example:
      >>> lengths = np.array([5, 1, 2, 3, 2])
      >>> batches = packed_batches(
      ...     (lengths, lengths), np.arange(5), shapes=[(2, 4), (1, 8)], rng=None
      ... )
      >>> [(pairs.tolist(), rows.tolist(), shape) for (pairs, rows), shape in batches]
      [([0, 3], [0, 0], (1, 8)), ([2, 4, 1], [0, 0, 1], (2, 4))]
    """
    row_lengths = [length for _, length in shapes]
    waiting = [(order[:0], order[:0]) for _ in shapes]
    for window in _windows(lengths, order, row_lengths=row_lengths, rng=rng):
        full: list[tuple[Rows, Shape]] = []
        for kind, rows in enumerate(window):
            batches, waiting[kind] = _split_batches(
                waiting[kind], rows, size=shapes[kind][0]
            )
            full += [(batch, shapes[kind]) for batch in batches]
        schedule = np.arange(len(full)) if rng is None else rng.permutation(len(full))
        yield from (full[index] for index in schedule)
    for rest, shape in zip(waiting, shapes, strict=True):
        if len(rest[0]):
            yield rest, shape


def _windows(
    lengths: tuple[Integers, Integers],
    order: Integers,
    *,
    row_lengths: Sequence[int],
    rng: np.random.Generator | None,
) -> Iterator[list[Rows]]:
    """Yields, for each window, the packed rows of each length."""
    waiting = order[:0]
    start = 0
    while start < len(order) or len(waiting):
        pairs = np.concatenate([waiting, order[start : start + WINDOW_PAIRS]])
        start += WINDOW_PAIRS
        packed = pack(lengths[0][pairs], lengths[1][pairs], row_lengths=row_lengths)
        waiting = pairs[packed.rows < 0]
        pairs, rows = pairs[packed.rows >= 0], packed.rows[packed.rows >= 0]
        yield [
            _rows_of(packed.row_lengths == length, pairs, rows, rng=rng)
            for length in row_lengths
        ]


def _rows_of(
    mask: Integers,
    pairs: Integers,
    rows: Integers,
    *,
    rng: np.random.Generator | None,
) -> Rows:
    """Selects some rows and renumbers them."""
    number = int(np.count_nonzero(mask))
    renumbered = np.zeros(len(mask), np.int32)
    renumbered[mask] = np.arange(number) if rng is None else rng.permutation(number)
    taken = mask[rows]
    pairs, rows = pairs[taken], renumbered[rows[taken]]
    by_row = np.argsort(rows, kind="stable")
    return pairs[by_row], rows[by_row]


def _split_batches(waiting: Rows, more: Rows, *, size: int) -> tuple[list[Rows], Rows]:
    """Splits rows into batches of `size` rows; returns them and the remaining rows."""
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
