import dataclasses

import jax.numpy as jnp
import pytest
from numpy.testing import assert_array_equal

from t2t_jax.model.defaults import (
    check_positions,
    default_segments_and_positions,
    dropout_rows,
)
from tests.model.tiny import TINY

TOKENS = jnp.array([[5, 7, 2], [9, 2, 0]])
LEARNED = dataclasses.replace(TINY, positions="learned", max_positions=2)


def test_what_is_left_out_means_one_sentence_a_row():
    segments, positions = default_segments_and_positions(
        TINY, TOKENS, None, positions_BxL=None
    )
    assert_array_equal(segments, [[1, 1, 1], [1, 1, 0]])
    assert_array_equal(positions, [[0, 1, 2], [0, 1, 2]])


def test_what_is_given_is_kept():
    given = jnp.array([[3, 1, 4], [1, 5, 9]])
    segments, positions = default_segments_and_positions(
        TINY, TOKENS, given, positions_BxL=given + 1
    )
    assert_array_equal(segments, given)
    assert_array_equal(positions, given + 1)


def test_rows_are_numbered_unless_they_are_given_or_nothing_is_dropped():
    assert_array_equal(dropout_rows(TOKENS, None, deterministic=False), [0, 1])
    given = jnp.array([6, 3])
    assert dropout_rows(TOKENS, given, deterministic=False) is given
    assert dropout_rows(TOKENS, given, deterministic=True) is None


def test_a_row_longer_than_the_table_of_positions_is_refused():
    with pytest.raises(ValueError, match="length=3 must be at most max_positions=2"):
        default_segments_and_positions(LEARNED, TOKENS, None, positions_BxL=None)


def test_sinusoids_have_no_limit_and_packed_rows_bring_their_positions():
    check_positions(TINY, 10**6)
    default_segments_and_positions(
        LEARNED, TOKENS, None, positions_BxL=jnp.zeros((2, 3), int)
    )
