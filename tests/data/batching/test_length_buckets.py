from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.data.batching.length_buckets import bucket_batches, choose_bucket_lengths


def slots_of(lengths, bucket_lengths, *, slots):
    """Counts the slots of whole batches, bucket by bucket."""
    used, above = 0, 0
    for length in bucket_lengths:
        rows = slots // length
        pairs = ((lengths > above) & (lengths <= length)).sum()
        used += -(-pairs // rows) * rows * length
        above = length
    return used


def best_by_trying(lengths, *, slots, max_buckets):
    """Tries every choice: the fewest slots of each number of buckets."""
    *shorter, longest = sorted(set(lengths.tolist()))
    return [
        min(
            slots_of(lengths, [*chosen, longest], slots=slots)
            for chosen in combinations(shorter, number)
        )
        for number in range(min(max_buckets, len(shorter) + 1))
    ]


@given(
    st.lists(st.integers(1, 11), min_size=1, max_size=60),
    st.integers(11, 47),
    st.integers(1, 4),
)
def test_no_other_choice_leaves_fewer_slots_empty(lengths, slots, max_buckets):
    lengths = np.array(lengths)
    chosen = choose_bucket_lengths(lengths, slots=slots, max_buckets=max_buckets)
    best = best_by_trying(lengths, slots=slots, max_buckets=max_buckets)
    assert chosen == sorted(set(chosen))
    assert chosen[-1] == lengths.max()
    used = slots_of(lengths, chosen, slots=slots)
    assert used == best[len(chosen) - 1]
    # as few buckets as do, within 1 %
    assert used <= 1.01 * min(best)
    assert all(other > 1.01 * min(best) for other in best[: len(chosen) - 1])


def test_buckets_as_drawn_by_hand():
    #   7 pairs of 3 and 5 of 10 in batches of 20 slots: 6 rows of 3, 2 of 10.
    lengths = np.repeat([3, 10], [7, 5])
    #   apart 2 * 18 + 3 * 20 = 96 slots, together 6 * 20 = 120
    assert choose_bucket_lengths(lengths, slots=20) == [3, 10]
    #   1 pair of 3 and 5 of 10: the short one has room in the last batch of 10
    assert choose_bucket_lengths(lengths[6:], slots=20) == [10]


def test_each_bucket_takes_its_pairs_in_order_and_batches_are_shuffled():
    lengths = np.random.default_rng(0).integers(1, 14, 997)
    order = np.random.default_rng(1).permutation(997)
    shapes, rng = [(5, 5), (2, 13)], np.random.default_rng(2)
    dealt = list(bucket_batches(lengths, order, shapes=shapes, rng=rng))
    for length, shorter in ((5, 0), (13, 5)):
        pairs = np.concatenate([pairs for pairs, (_, most) in dealt if most == length])
        mine = (lengths[order] > shorter) & (lengths[order] <= length)
        assert pairs.tolist() == order[mine].tolist()
    buckets = np.array([length for _, (_, length) in dealt])
    # As often as in a random sequence a batch of the one bucket follows the other.
    share = (buckets == 5).mean()
    changes = (np.diff(buckets) != 0).mean()
    assert changes == pytest.approx(2 * share * (1 - share), abs=0.06)
