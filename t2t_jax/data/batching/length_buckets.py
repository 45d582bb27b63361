"""Length buckets: batches of one pair a row, rows of similar length, few shapes.

Paper: §5.1, "sentence pairs were batched together by approximate sequence length".

A bucket is a length L: its rows hold one pair each whose longer side has at most L
tokens, and its batches as many rows as fill the slots of a batch. The lengths are
chosen for the corpus to minimise padding. On lengths like WMT14's (log-normal, mean 28)
ten buckets leave 17 to 19 % padding, of which 7 % is due to sides of unequal length.
With several pairs per row, three row lengths suffice for 3 %: see `packing`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from t2t_jax.data.arrays import Integers, Rng
from t2t_jax.data.batching.packing import Shape, Shapes

MAX_BUCKETS = 10
"""Maximum number of lengths, and so of batch shapes to compile."""

# Each additional bucket must save this share of the slots: it is one more shape to
# compile, and its last batch of an epoch holds few pairs.
_MIN_SAVING = 0.01


def choose_bucket_lengths(
    lengths: Integers, *, slots: int, max_buckets: int = MAX_BUCKETS
) -> list[int]:
    """Chooses the fewest buckets within 1 % of the minimal number of slots.

    Slots are those of full batches, including the last one of each bucket, so a small
    corpus gets fewer buckets.

    Args:
      lengths: [P] tokens of the longer side of each pair, at least 1.
      slots: of a batch on each side, an upper bound; at least the longest pair.

    Returns:
      Ascending lengths, the last that of the longest pair.

    Raises:
      ValueError: a pair is longer than a batch.

    Example:
      >>> lengths = np.array([3, 3, 3, 4, 9, 10])
      >>> choose_bucket_lengths(lengths, slots=20, max_buckets=2)
      [4, 10]
    """
    counts = np.bincount(lengths)
    if len(candidates := np.flatnonzero(counts)) == 0:
        return []
    if candidates[-1] > slots:
        raise ValueError(
            f"A pair of {candidates[-1]} tokens must fit a batch of {slots} slots a "
            "side. Drop longer pairs, or change config.data.tokens_per_batch."
        )
    cost = _slots_of_buckets(counts[candidates], candidates, slots=slots)
    # fewest[j]: minimal slots of all pairs up to candidate j, in len(before) + 1
    # buckets.
    fewest = cost[0]
    totals, before = [int(fewest[-1])], []
    for _ in range(min(max_buckets, len(candidates)) - 1):
        through = fewest[:-1, None] + cost[1:]
        before.append(np.argmin(through, axis=0))
        fewest = through.min(axis=0)
        totals.append(int(fewest[-1]))
    allowed = min(totals) * (1 + _MIN_SAVING)
    number = next(more for more, total in enumerate(totals) if total <= allowed)
    ends = [len(candidates) - 1]
    for previous in reversed(before[:number]):
        ends.append(int(previous[ends[-1]]))
    return [int(length) for length in candidates[ends[::-1]]]


def _slots_of_buckets(counts: Integers, lengths: Integers, *, slots: int) -> Integers:
    """Returns [i, j]: slots of the batches of one bucket with lengths i to j."""
    up_to = np.cumsum(counts)
    pairs = up_to[None, :] - (up_to - counts)[:, None]
    rows = slots // lengths
    cost = -(-pairs // rows) * rows * lengths
    impossible = np.iinfo(np.int64).max // (2 * MAX_BUCKETS)
    return np.where(np.triu(np.ones_like(cost)) > 0, cost, impossible)


def bucket_batches(
    lengths: Integers, order: Integers, *, shapes: Shapes, rng: Rng
) -> Iterator[tuple[Integers, Shape]]:
    """Distributes pairs over batches of one bucket each.

    Args:
      lengths: [P] tokens of the longer side of each pair of the corpus.
      order: indices of pairs, in the order in which each bucket takes them.
      shapes: (rows, slots of a row on each side) of each bucket's batches, short rows
        first.
      rng: shuffles the batches of all buckets; None yields short buckets first.

    Yields:
      Pairs, a row each, and the shape of their batch. The last batch of a bucket may
      have fewer pairs.

    Example:
      >>> lengths, order = np.array([2, 5, 1, 4]), np.array([3, 2, 1, 0])
      >>> batches = bucket_batches(lengths, order, shapes=[(2, 2), (1, 5)], rng=None)
      >>> [(pairs.tolist(), shape) for pairs, shape in batches]
      [([2, 0], (2, 2)), ([3], (1, 5)), ([1], (1, 5))]
    """
    longest = [length for _, length in shapes]
    bucket_of_length = np.searchsorted(longest, np.arange(max(longest, default=0) + 1))
    # One byte per pair makes the random access, the slow part, faster.
    buckets = bucket_of_length.astype(np.uint8)[lengths][order]
    members = [order[buckets == bucket] for bucket in range(len(shapes))]
    sizes = zip(members, shapes, strict=True)
    num_batches = [-(-len(pairs) // rows) for pairs, (rows, _) in sizes]
    schedule = np.repeat(np.arange(len(shapes)), num_batches)
    if rng is not None:
        schedule = rng.permutation(schedule)
    taken = [0] * len(shapes)
    for bucket in schedule.tolist():
        first = taken[bucket]
        taken[bucket] += shapes[bucket][0]
        yield members[bucket][first : taken[bucket]], shapes[bucket]
