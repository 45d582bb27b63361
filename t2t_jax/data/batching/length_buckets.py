"""Length buckets: batches of one pair a row, rows of similar length, few shapes.

Paper: §5.1, "sentence pairs were batched together by approximate sequence length".

A bucket is a length L: its rows hold one pair each whose longer side has at most L
tokens, and its batches as many rows as fill the slots of a batch. The lengths are
chosen for the corpus to minimise padding. On lengths like WMT14's (log-normal, mean 28)
ten buckets leave 17 to 19 % padding, of which 7 % is due to sides of unequal length.
With several pairs per row, three row lengths suffice for 3 %: see `packing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from t2t_jax.data.arrays import Integers

MAX_GROUPS = 10
"""Maximum number of lengths, and so of batch shapes to compile."""

# Each additional bucket must save this share of the slots: it is one more shape to
# compile, and its last batch of an epoch holds few pairs.
_MIN_SAVING = 0.01


def choose_bucket_lengths(
    lengths: Integers, *, slots: int, max_groups: int = MAX_GROUPS
) -> list[int]:
    """Chooses the bucket lengths by dynamic programming.

    The cost is in slots of full batches, including the last one of each bucket, so a
    small corpus gets fewer buckets.

    Args:
      lengths: [P] tokens of the longer side of each pair, at least 1.
      slots: of a batch on each side, an upper bound; at least the longest pair.

    Returns:
      Ascending lengths, the last that of the longest pair: the fewest buckets within 1
      % of the minimal number of slots.

    Raises:
      ValueError: a pair is longer than a batch.

    Example:
      >>> lengths = np.array([3, 3, 3, 4, 9, 10])
      >>> choose_bucket_lengths(lengths, slots=20, max_groups=2)
      [4, 10]
    """
    counts = np.bincount(lengths)
    candidates = np.flatnonzero(counts)
    if len(candidates) == 0:
        return []
    if candidates[-1] > slots:
        raise ValueError(
            f"A pair of {candidates[-1]} tokens must fit a batch of {slots} slots a "
            "side. Drop longer pairs, or change config.data.tokens_per_batch."
        )
    cost = _slots_of_groups(counts[candidates], candidates, slots=slots)
    # fewest[j]: minimal slots of all pairs up to candidate j, in len(before) + 1
    # buckets.
    fewest = cost[0]
    totals, before = [int(fewest[-1])], []
    for _ in range(min(max_groups, len(candidates)) - 1):
        through = fewest[:-1, None] + cost[1:]
        before.append(np.argmin(through, axis=0))
        fewest = through.min(axis=0)
        totals.append(int(fewest[-1]))
    allowed = min(totals) * (1 + _MIN_SAVING)
    number = next(groups for groups, total in enumerate(totals) if total <= allowed)
    ends = [len(candidates) - 1]
    for previous in reversed(before[:number]):
        ends.append(int(previous[ends[-1]]))
    return [int(length) for length in candidates[ends[::-1]]]


def _slots_of_groups(counts: Integers, lengths: Integers, *, slots: int) -> Integers:
    """Returns [i, j]: slots of the batches of one bucket with lengths i to j."""
    up_to = np.cumsum(counts)
    pairs = up_to[None, :] - (up_to - counts)[:, None]
    rows = slots // lengths
    cost = -(-pairs // rows) * rows * lengths
    impossible = np.iinfo(np.int64).max // (2 * MAX_GROUPS)
    return np.where(np.triu(np.ones_like(cost)) > 0, cost, impossible)


def group_batches(
    lengths: Integers,
    order: Integers,
    *,
    group_lengths: Sequence[int],
    slots: int,
    rng: np.random.Generator | None,
) -> Iterator[tuple[Integers, int]]:
    """Distributes pairs over batches of one bucket each.

    Args:
      lengths: [P] tokens of the longer side of each pair of the corpus.
      order: indices of pairs, in the order in which each bucket takes them.
      group_lengths: from `choose_bucket_lengths`.
      slots: of a batch on each side, an upper bound.
      rng: shuffles the batches of all buckets; None yields short buckets first.

    Yields:
      (pairs, length): a row each, and the length of the rows. The last batch of a
      bucket may have fewer pairs.

    Example:
      >>> lengths, order = np.array([2, 5, 1, 4]), np.array([3, 2, 1, 0])
      >>> batches = group_batches(
      ...     lengths, order, group_lengths=[2, 5], slots=5, rng=None
      ... )
      >>> [(pairs.tolist(), length) for pairs, length in batches]
      [([2, 0], 2), ([3], 5), ([1], 5)]
    """
    longest = max(group_lengths, default=0)
    group_of_length = np.searchsorted(group_lengths, np.arange(longest + 1))
    # One byte per pair makes the random access, the slow part, faster.
    groups = group_of_length.astype(np.uint8)[lengths][order]
    members = [order[groups == group] for group in range(len(group_lengths))]
    rows = [slots // length for length in group_lengths]
    num_batches = [-(-len(m) // r) for m, r in zip(members, rows, strict=True)]
    schedule = np.repeat(np.arange(len(group_lengths)), num_batches)
    if rng is not None:
        schedule = rng.permutation(schedule)
    taken = [0] * len(group_lengths)
    for group in schedule.tolist():
        first = taken[group]
        taken[group] += rows[group]
        yield members[group][first : taken[group]], group_lengths[group]
