import jax.numpy as jnp
from numpy.testing import assert_array_equal

from t2t_jax.functional.masks import (
    causal_mask,
    causal_segment_mask,
    segment_mask,
    segments_of,
)


def drawn(picture):
    """Reads a mask drawn with x for True, one line a query."""
    return [[mark == "x" for mark in line] for line in picture.split()]


def test_a_causal_mask_is_a_triangle_with_its_diagonal():
    assert_array_equal(causal_mask(4), drawn("x... xx.. xxx. xxxx"))


def test_each_row_s_target_looks_at_the_source_of_its_pair_and_padding_at_nothing():
    target = jnp.array([[1, 2, 2, 0], [1, 2, 3, 3]])
    source = jnp.array([[1, 1, 1, 2, 0, 0], [2, 2, 1, 3, 0, 0]])
    masks = segment_mask(target, source)
    assert_array_equal(masks[0], drawn("xxx... ...x.. ...x.. ......"))
    assert_array_equal(masks[1], drawn("..x... xx.... ...x.. ...x.."))


def test_the_decoder_looks_back_inside_its_segment():
    segments = jnp.array([[1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 1, 1]])
    masks = causal_segment_mask(segments)
    assert_array_equal(masks[0], drawn("x..... xx.... ..x... ..xx.. ..xxx. ......"))
    assert_array_equal(masks[1], causal_mask(6))


def test_time_is_the_index_in_the_row_not_the_segment_number():
    # Segments need not come in ascending order.
    assert_array_equal(causal_segment_mask(jnp.array([2, 2, 1])), drawn("x.. xx. ..x"))


def test_every_token_but_padding_belongs_to_the_one_segment():
    segments = segments_of(jnp.array([[1, 3, 0], [9, 2, 4]]))
    assert_array_equal(segments, [[1, 1, 0], [1, 1, 1]])
