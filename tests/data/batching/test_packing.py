import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.data.batching.packing import pack


def test_the_longest_pairs_have_rows_of_their_own_and_the_short_ones_fill():
    lengths = np.array([7, 2, 5, 7, 1, 2])
    #   row 0: 7 1    row 1: 7 .    row 2: 5 2    and one 2 too many
    rows, _ = pack(lengths, lengths, row_lengths=[8])
    assert rows[[0, 3, 2]].tolist() == [0, 1, 2]
    assert sorted(rows[[1, 5]]) == [-1, 2]
    assert rows[4] in (0, 1)


def test_a_pair_gets_a_longer_row_only_where_it_must_or_where_room_is_left():
    lengths = np.array([5, 2, 3, 3, 8, 1])
    rows, row_lengths = pack(lengths, lengths, row_lengths=[4, 8])
    #   8: 8    8: 5 3    4: 3 1    and one 2 too many
    assert row_lengths.tolist() == [8, 8, 4]
    assert sorted(rows[[0, 4]]) == [0, 1]
    assert sorted(rows[[2, 3]]) == [rows[0], 2]
    assert rows[[5, 1]].tolist() == [2, -1]


@given(
    st.lists(st.tuples(st.integers(1, 13), st.integers(1, 13)), min_size=1),
    st.sampled_from([[13], [7, 14], [3, 6, 13], [1, 13]]),
)
def test_no_row_overflows_and_none_is_empty(pairs, row_lengths):
    lengths_Px2 = np.array(pairs)
    rows, of_rows = pack(lengths_Px2[:, 0], lengths_Px2[:, 1], row_lengths=row_lengths)
    placed = rows >= 0
    assert placed.any()
    assert set(of_rows) <= set(row_lengths)
    assert rows.max() + 1 == len(of_rows)
    for side in (0, 1):
        filled = np.bincount(rows[placed], lengths_Px2[placed, side])
        assert (filled <= of_rows).all()
        assert filled.min() >= 1
