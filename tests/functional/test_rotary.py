import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.rotary import rotate


def test_neighbouring_components_are_turned_by_the_rates_of_the_sinusoids():
    # at position 100 by 100 and, at the rate 10000^(-2/4), by 1
    x = jnp.array([1.0, 0.0, 0.0, 2.0])[None, None, None]
    found = rotate(x, jnp.array([[100]]))[0, 0, 0]
    wanted = [np.cos(100), np.sin(100), -2 * np.sin(1), 2 * np.cos(1)]
    assert_allclose(found, wanted, rtol=1e-5)  # float32 angles


def test_products_depend_on_the_difference_of_positions_alone():
    draw = np.random.default_rng(0).normal
    q, k = (jnp.asarray(draw(size=(1, 3, 1, 6)), jnp.float32) for _ in range(2))

    def score(at, other):
        products = rotate(q, jnp.array([[at]])) * rotate(k, jnp.array([[other]]))
        return products.sum(-1)

    assert_allclose(score(13, 2), score(111, 100), atol=1e-4)  # float32 angles
    assert np.abs(score(13, 2) - score(2, 13)).max() > 0.1
    assert_allclose(score(5, 5), (q * k).sum(-1), rtol=1e-5, atol=1e-5)


def test_position_0_changes_nothing_and_rows_and_heads_have_one_table():
    draw = np.random.default_rng(1).normal
    x = jnp.asarray(draw(size=(2, 3, 4, 6)), jnp.float32)
    positions = jnp.array([[0, 1, 0, 1], [0, 1, 2, 3]])  # two sentences in a row
    found = rotate(x, positions)
    assert_array_equal(found[:, :, 0], x[:, :, 0])
    assert_array_equal(found[0, :, 2], x[0, :, 2])
    one = rotate(x[:1, :, 3:], jnp.array([[1]]))
    assert_allclose(found[0, :, 3:], one[0], rtol=1e-6)  # float32


def test_angles_are_float32_even_in_bfloat16():
    x = jnp.array([1.0, 0.0], jnp.bfloat16)[None, None, None]
    found = rotate(x, jnp.array([[1001]]))  # bfloat16 has 1,000 and 1,004
    assert found.dtype == jnp.bfloat16
    wanted = [np.cos(1001), np.sin(1001)]
    assert_allclose(found[0, 0, 0].astype(jnp.float32), wanted, rtol=2**-8)


def test_an_odd_depth_is_refused():
    with pytest.raises(ValueError, match="d_k=7 must be even"):
        rotate(jnp.zeros((1, 1, 1, 7)), jnp.zeros((1, 1), int))
