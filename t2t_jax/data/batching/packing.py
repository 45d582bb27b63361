"""Packs sentence pairs into rows with two sides, to minimise padding.

With one WMT pair per row of 256 slots, nine tenths would be padding. With several pairs
per row, on lengths like WMT14's (log-normal, mean 28), 1 % is padding, or 3 % if most
rows have 64 slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from t2t_jax.data.arrays import Integers, Lengths, Rng

WINDOW_PAIRS = 20_000

Shape: TypeAlias = tuple[int, int]
Shapes: TypeAlias = Sequence[Shape]
_Sides: TypeAlias = Sequence[Integers]
Rows: TypeAlias = tuple[Integers, Integers]
"""[P] pairs, and [P] the row of each, ascending from 0 without gaps."""

# Pairs with longer sides of equal length are grouped by the difference of their sides,
# in fifths of the longer side.
_FIFTHS = 5


def pack(
    source_lengths: Integers, target_lengths: Integers, *, row_lengths: Sequence[int]
) -> tuple[Integers, Integers]:
    """Assigns pairs to rows so that both sides of every row fit.

    For each length but the smallest there is one row per pair that needs it, and of the
    smallest length as many rows as the remaining tokens would fill exactly. Pairs are
    placed longest first, each in the row with the least remaining space (best fit
    decreasing); pairs with about the same two lengths at once: a window of 20,000 WMT
    pairs takes 20 ms instead of 400. A few pairs do not fit and are left to the
    caller's next window.

    Args:
      source_lengths: [P] tokens of each pair's source side, at least 1.
      target_lengths: [P] tokens of each pair's target side, at least 1.
      row_lengths: slots of a row on each side, ascending.

    Returns:
      [P] the row of each pair, from 0 without gaps, and -1 if it did not fit; and [R]
      slots of each row, on each side, long rows first. No row is empty; at least one
      pair is placed, if there is any.

    Raises:
      ValueError: a pair is longer than a row.

    Example:
      >>> lengths = np.array([3, 5, 4, 2, 1, 1])
      >>> pack(lengths, lengths, row_lengths=[8])[0].tolist()
      [0, 0, 1, 1, 1, 1]
      >>> pack(lengths, lengths, row_lengths=[4, 8])[1].tolist()
      [8, 4, 4]
    """
    # Two arrays instead of one [P, 2]: numpy is slow along an axis of length two.
    lengths = [source_lengths.astype(np.int32), target_lengths.astype(np.int32)]
    longer = np.maximum(*lengths)
    if (longest := int(longer.max(initial=0))) > row_lengths[-1]:
        raise ValueError(
            f"A pair of {longest} tokens must fit row_length={row_lengths[-1]}. Drop "
            "longer pairs, or change config.data.row_length."
        )
    row_slots = _slots(lengths, longer, row_lengths)
    rows_P = np.full(len(longer), -1, np.int32)
    space = [row_slots.copy(), row_slots.copy()]
    for pairs in _similar_pairs(lengths, longer):
        _place(pairs, lengths, space, rows_P)
    used = np.bincount(rows_P[rows_P >= 0], minlength=len(row_slots)) > 0
    numbers = np.cumsum(used, dtype=np.int32) - 1
    return np.where(rows_P >= 0, numbers[rows_P], -1), row_slots[used]


def _slots(lengths: _Sides, longer: Integers, row_lengths: Sequence[int]) -> Integers:
    row_slots = [
        np.full(np.count_nonzero((longer > shorter) & (longer <= length)), length)
        for shorter, length in zip(row_lengths[-2::-1], row_lengths[:0:-1], strict=True)
    ]
    tokens = max(int(side.sum(dtype=np.int64)) for side in lengths)
    left = tokens - sum(int(rows.sum()) for rows in row_slots)
    needed = int(np.any(longer <= row_lengths[0]))
    row_slots.append(np.full(max(left // row_lengths[0], needed), row_lengths[0]))
    return np.concatenate(row_slots).astype(np.int32)


def _similar_pairs(lengths: _Sides, longer: Integers) -> list[Integers]:
    """Groups pairs of about the same two lengths, long ones first."""
    if len(longer) == 0:
        return []
    favour = (2 * _FIFTHS * (lengths[0] - lengths[1]) + longer) // (2 * longer)
    kind = longer * (2 * _FIFTHS + 1) + favour
    longest_first = np.argsort(-kind, kind="stable")
    return np.split(longest_first, np.flatnonzero(np.diff(kind[longest_first])) + 1)


def _place(pairs: Integers, lengths: _Sides, space: _Sides, rows_P: Integers) -> None:
    most = [side[pairs].max() for side in lengths]
    while len(pairs):
        rows = np.flatnonzero((space[0] >= most[0]) & (space[1] >= most[1]))
        if len(rows) == 0:
            return
        if len(rows) > len(pairs):
            left = [space[side][rows] - most[side] for side in (0, 1)]
            # Space on one side only is of little use to any pair.
            waste = 2 * np.maximum(*left) + np.minimum(*left)
            kind = np.min_scalar_type(int(waste.max()))  # 16 bits sort much faster
            rows = rows[np.argsort(waste.astype(kind), kind="stable")[: len(pairs)]]
        placed, pairs = pairs[: len(rows)], pairs[len(rows) :]
        favour = lengths[0][placed] - lengths[1][placed]
        placed = placed[np.argsort(favour, kind="stable")]
        rows = rows[np.argsort(space[0][rows] - space[1][rows], kind="stable")]
        rows_P[placed] = rows
        for side in (0, 1):
            space[side][rows] -= lengths[side][placed]


def packed_batches(
    lengths: Lengths, order: Integers, *, shapes: Shapes, rng: Rng
) -> Iterator[tuple[Rows, Shape]]:
    """Packs pairs window by window, and collects the rows in batches.

    A window is 20,000 pairs, so the first batch is ready long before the epoch is
    planned. Pairs that do not fit in it, and rows that do not fill a batch, move to the
    next window.

    Args:
      lengths: [N] tokens of each pair's source side, and [N] of its target side.
      order: indices of pairs, in the order of the windows.
      shapes: (rows, slots of a row on each side) of the batches, short rows first.
      rng: shuffles rows and full batches of a window; None keeps their order.

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
    left, start = order[:0], 0
    while start < len(order) or len(left):
        window = np.concatenate([left, order[start : start + WINDOW_PAIRS]])
        start += WINDOW_PAIRS
        sides = (side[window] for side in lengths)
        rows, row_slots = pack(*sides, row_lengths=row_lengths)
        fits = rows >= 0
        left, pairs, rows = window[~fits], window[fits], rows[fits]
        full: list[tuple[Rows, Shape]] = []
        for kind, (size, length) in enumerate(shapes):
            own = _rows_of(row_slots == length, pairs, rows, rng=rng)
            batches, waiting[kind] = _split_batches(waiting[kind], own, size=size)
            full += [(batch, shapes[kind]) for batch in batches]
        schedule = np.arange(len(full)) if rng is None else rng.permutation(len(full))
        yield from (full[index] for index in schedule)
    for rest, shape in zip(waiting, shapes, strict=True):
        if len(rest[0]):
            yield rest, shape


def _rows_of(mask: Integers, pairs: Integers, rows: Integers, *, rng: Rng) -> Rows:
    number = int(np.count_nonzero(mask))
    renumbered = np.zeros(len(mask), np.int32)
    renumbered[mask] = np.arange(number) if rng is None else rng.permutation(number)
    taken = mask[rows]
    pairs, rows = pairs[taken], renumbered[rows[taken]]
    by_row = np.argsort(rows, kind="stable")
    return pairs[by_row], rows[by_row]


def _split_batches(waiting: Rows, more: Rows, *, size: int) -> tuple[list[Rows], Rows]:
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
