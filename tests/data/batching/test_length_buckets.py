from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.data.batching.length_buckets import choose_bucket_lengths, group_batches


def slots_of(lengths, group_lengths, *, slots):
    """Counts the slots of whole batches, group by group."""
    used, above = 0, 0
    for length in group_lengths:
        rows = slots // length
        pairs = ((lengths > above) & (lengths <= length)).sum()
        used += -(-pairs // rows) * rows * length
        above = length
    return used


def best_by_trying(lengths, *, slots, max_groups):
    """Tries every choice: the fewest slots of each number of groups."""
    *shorter, longest = sorted(set(lengths.tolist()))
    return [
        min(
            slots_of(lengths, [*chosen, longest], slots=slots)
            for chosen in combinations(shorter, number)
        )
        for number in range(min(max_groups, len(shorter) + 1))
    ]


@given(
    st.lists(st.integers(1, 11), min_size=1, max_size=60),
    st.integers(11, 47),
    st.integers(1, 4),
)
def test_no_other_choice_of_groups_leaves_fewer_slots_empty(lengths, slots, max_groups):
    lengths = np.array(lengths)
    chosen = choose_bucket_lengths(lengths, slots=slots, max_groups=max_groups)
    best = best_by_trying(lengths, slots=slots, max_groups=max_groups)
    assert chosen == sorted(set(chosen))
    assert chosen[-1] == lengths.max()
    used = slots_of(lengths, chosen, slots=slots)
    assert used == best[len(chosen) - 1]
    # as few groups as do, within 1 %
    assert used <= 1.01 * min(best)
    assert all(other > 1.01 * min(best) for other in best[: len(chosen) - 1])


def test_groups_as_drawn_by_hand():
    #   7 pairs of 3 and 5 of 10 in batches of 20 slots: 6 rows of 3, 2 of 10.
    lengths = np.repeat([3, 10], [7, 5])
    #   apart 2 * 18 + 3 * 20 = 96 slots, together 6 * 20 = 120
    assert choose_bucket_lengths(lengths, slots=20) == [3, 10]
    #   1 pair of 3 and 5 of 10: the short one has room in the last batch of 10
    assert choose_bucket_lengths(lengths[6:], slots=20) == [10]


def test_a_group_that_spares_less_than_1_percent_is_not_worth_it():
    lengths = np.repeat([99, 100], [5, 1000])
    assert choose_bucket_lengths(lengths, slots=100) == [100]
    lengths = np.repeat([50, 100], [50, 1000])
    assert choose_bucket_lengths(lengths, slots=100) == [50, 100]


def test_no_pairs_need_no_groups():
    nothing = np.zeros(0, np.int32)
    assert choose_bucket_lengths(nothing, slots=20) == []
    dealt = group_batches(nothing, nothing, group_lengths=[], slots=20, rng=None)
    assert list(dealt) == []


def test_a_pair_longer_than_a_batch_is_refused():
    with pytest.raises(ValueError, match=r"A pair of 21 tokens must fit .* 20 slots"):
        choose_bucket_lengths(np.array([3, 21]), slots=20)


def test_each_group_takes_its_pairs_in_order_and_batches_are_shuffled():
    lengths = np.random.default_rng(0).integers(1, 14, 997)
    order = np.random.default_rng(1).permutation(997)
    dealt = list(
        group_batches(
            lengths,
            order,
            group_lengths=[5, 13],
            slots=26,
            rng=np.random.default_rng(2),
        )
    )
    for length, shorter in ((5, 0), (13, 5)):
        pairs = np.concatenate([pairs for pairs, group in dealt if group == length])
        mine = (lengths[order] > shorter) & (lengths[order] <= length)
        assert pairs.tolist() == order[mine].tolist()
    groups = np.array([group for _, group in dealt])
    # As often as in a random sequence a batch of the one group follows the other.
    share = (groups == 5).mean()
    changes = (np.diff(groups) != 0).mean()
    assert changes == pytest.approx(2 * share * (1 - share), abs=0.06)
