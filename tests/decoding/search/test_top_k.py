import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.search.top_k import top_k

BLOCK = 40


def assert_equals_lax(values, k, **kwargs):
    expected_values, expected_indices = jax.lax.top_k(values, k)
    found_values, found_indices = top_k(values, k, **kwargs)
    np.testing.assert_array_equal(found_values, expected_values)
    np.testing.assert_array_equal(found_indices, expected_indices)


@pytest.mark.parametrize("size", [3, 7, 35, 36, 41, 211])
@pytest.mark.parametrize("k", [1, 3])
def test_any_size_gives_what_a_full_search_gives(size, k):
    values = jax.random.normal(jax.random.key(size), (2, 5, size))
    assert_equals_lax(values, k, block=7)


def test_equal_values_come_in_the_order_of_their_indices():
    for seed in range(30):
        # Five values only, so that almost everything is equal to something.
        values = jax.random.randint(jax.random.key(seed), (3, 103), 0, 5)
        assert_equals_lax(values.astype(jnp.float32), 6, block=5)


def test_the_best_may_lie_in_one_block_and_in_the_ragged_end():
    values_V = jnp.zeros(7 * BLOCK + 3)
    crowded = values_V.at[3 * BLOCK : 3 * BLOCK + 5].set(jnp.arange(1.0, 6.0))
    assert top_k(crowded, 5, block=BLOCK)[1].tolist() == [
        3 * BLOCK + n for n in (4, 3, 2, 1, 0)
    ]
    at_the_end = values_V.at[-1].set(2.0).at[0].set(1.0)
    assert top_k(at_the_end, 2, block=BLOCK)[1].tolist() == [7 * BLOCK + 2, 0]


@pytest.mark.parametrize("size", [500, 8_000, 8_009, 37_000])
def test_blocks_of_its_own_choice_find_the_same(size):
    assert_equals_lax(jax.random.normal(jax.random.key(size), (3, size)), 10)


def test_minus_infinity_and_bfloat16_are_kept():
    values = jnp.full((2, 11 * BLOCK), -jnp.inf, jnp.bfloat16).at[1, 777].set(-3.0)
    assert_equals_lax(values, 4)
    assert top_k(values, 4)[0].dtype == jnp.bfloat16


def test_vmap_and_jit_change_nothing():
    values = jax.random.normal(jax.random.key(0), (3, 2, 1009))
    mapped = jax.jit(jax.vmap(lambda rows: top_k(rows, 5)))(values)
    for found, expected in zip(mapped, jax.lax.top_k(values, 5), strict=True):
        np.testing.assert_array_equal(found, expected)
