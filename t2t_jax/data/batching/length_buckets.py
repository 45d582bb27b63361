"""Rows of one pair each, in batches of pairs of like length: few shapes, padded ends.

Paper: §5.1, "sentence pairs were batched together by approximate sequence length".

A group is a length L: its batches have as many rows as fill the batch's slots, and a
row holds one pair whose longer side has at most L tokens. The groups are chosen for the
corpus at hand, so that they leave as few slots empty as so many groups can. On lengths
like WMT14's (log-normal, mean 28) ten groups come out 81 to 83 % real; sides of
different length cost 7 % of the slots whatever the groups. Where several pairs may
share a row, three lengths are enough for 97 %: see `packing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from t2t_jax.data.batching.packing import Integers

MAX_GROUPS = 10
"""Most lengths, and so most batch shapes, each of which has to be compiled."""

# A group more must spare this share of the slots: it has to be compiled, and its last
# batch of an epoch is an update that few pairs decide.
_WORTH_A_GROUP = 0.01


def choose_bucket_lengths(
    lengths: Integers, *, slots: int, max_groups: int = MAX_GROUPS
) -> list[int]:
    """Chooses the lengths of the groups, by dynamic programming.

    Counted are the slots of whole batches, the last of each group included: a small
    corpus gets fewer groups.

    Args:
      lengths: [P] tokens of the longer side of each pair, at least 1.
      slots: of a batch on each side, an upper bound; the longest pair must fit.
      max_groups: how many there may be.

    Returns:
      Ascending lengths, the last that of the longest pair: those with the fewest slots,
      and of fewer groups that need 1 % more at most the fewest.

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
    # fewest[j]: slots of all pairs up to candidate j, in as many groups as `before`
    # has entries and one more.
    fewest = cost[0]
    totals, before = [int(fewest[-1])], []
    for _ in range(min(max_groups, len(candidates)) - 1):
        through = fewest[:-1, None] + cost[1:]
        before.append(np.argmin(through, axis=0))
        fewest = through.min(axis=0)
        totals.append(int(fewest[-1]))
    allowed = min(totals) * (1 + _WORTH_A_GROUP)
    number = next(groups for groups, total in enumerate(totals) if total <= allowed)
    ends = [len(candidates) - 1]
    for previous in reversed(before[:number]):
        ends.append(int(previous[ends[-1]]))
    return [int(length) for length in candidates[ends[::-1]]]


def _slots_of_groups(counts: Integers, lengths: Integers, *, slots: int) -> Integers:
    """Returns [i, j]: slots of whole batches that hold lengths i to j, as one group."""
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
    chance: np.random.Generator | None,
) -> Iterator[tuple[Integers, int]]:
    """Deals pairs into batches, each of one group.

    Args:
      lengths: [P] tokens of the longer side of each pair of the corpus.
      order: numbers of pairs, in the order in which each group takes them.
      group_lengths: of `choose_bucket_lengths`.
      slots: of a batch on each side, an upper bound.
      chance: shuffles the batches of all groups; None leaves short groups first.

    Yields:
      (pairs, length): a row each, and how long the rows are. The last batch of a group
      may have fewer pairs than its slots would hold.

    Example:
      >>> lengths, order = np.array([2, 5, 1, 4]), np.array([3, 2, 1, 0])
      >>> batches = group_batches(
      ...     lengths, order, group_lengths=[2, 5], slots=5, chance=None
      ... )
      >>> [(pairs.tolist(), length) for pairs, length in batches]
      [([2, 0], 2), ([3], 5), ([1], 5)]
    """
    longest = max(group_lengths, default=0)
    group_of_length = np.searchsorted(group_lengths, np.arange(longest + 1))
    # One byte a pair before the random access, which is what takes the time.
    groups = group_of_length.astype(np.uint8)[lengths][order]
    members = [order[groups == group] for group in range(len(group_lengths))]
    rows = [slots // length for length in group_lengths]
    num_batches = [-(-len(m) // r) for m, r in zip(members, rows, strict=True)]
    turns = np.repeat(np.arange(len(group_lengths)), num_batches)
    if chance is not None:
        turns = chance.permutation(turns)
    taken = [0] * len(group_lengths)
    for group in turns.tolist():
        first = taken[group]
        taken[group] += rows[group]
        yield members[group][first : taken[group]], group_lengths[group]
