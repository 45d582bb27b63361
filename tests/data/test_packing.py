import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.data.packing import pack


def test_pairs_need_room_on_both_sides():
    source = np.array([4, 4, 1, 1])
    target = np.array([1, 1, 4, 4])
    # Two rows of 5 hold one pair of each kind, and never two of the same kind.
    rows = pack(source, target, row_length=5)
    assert sorted(rows[:2]) == [0, 1]
    assert sorted(rows[2:]) == [0, 1]


def test_the_longest_pairs_stand_alone_and_the_short_ones_fill():
    lengths = np.array([7, 2, 5, 7, 1, 2])
    #   row 0: 7 1    row 1: 7 .    row 2: 5 2    and one 2 too many
    rows = pack(lengths, lengths, row_length=8)
    assert rows[0] == 0
    assert rows[3] == 1
    assert rows[2] == 2
    assert sorted(rows[[1, 5]]) == [-1, 2]
    assert rows[4] in (0, 1)


def test_no_pairs_need_no_rows():
    assert pack(np.zeros(0, int), np.zeros(0, int), row_length=5).tolist() == []


def test_a_pair_longer_than_a_row_is_refused():
    with pytest.raises(ValueError, match=r"A pair of 9 tokens .*row_length=8"):
        pack(np.array([3, 2]), np.array([9, 2]), row_length=8)


@given(st.lists(st.tuples(st.integers(1, 13), st.integers(1, 13)), min_size=1))
def test_no_row_overflows_and_none_is_empty(pairs):
    lengths_Px2 = np.array(pairs)
    rows = pack(lengths_Px2[:, 0], lengths_Px2[:, 1], row_length=13)
    placed = rows >= 0
    assert placed.any()
    for side in (0, 1):
        filled = np.bincount(rows[placed], lengths_Px2[placed, side])
        assert filled.max() <= 13
        assert filled.min() >= 1
