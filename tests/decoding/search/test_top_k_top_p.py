import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.decoding.search.top_k_top_p import top_k, top_k_filter, top_p_filter

BLOCK, NUCLEUS = 40, jax.jit(top_p_filter)


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


@pytest.mark.parametrize("size", [500, 8_000, 8_009, 37_000])
def test_blocks_of_its_own_choice_find_the_same(size):
    assert_equals_lax(jax.random.normal(jax.random.key(size), (3, size)), 10)


def test_minus_infinity_and_bfloat16_are_kept():
    values = jnp.full((2, 11 * BLOCK), -jnp.inf, jnp.bfloat16).at[1, 777].set(-3.0)
    assert_equals_lax(values, 4)
    assert top_k(values, 4)[0].dtype == jnp.bfloat16


def sorted_nucleus(logits_V, p):
    """Finds the same by sorting, one token after the other."""
    probabilities = np.exp(logits_V - logits_V.max())
    probabilities /= probabilities.sum()
    kept, total = set(), 0.0
    for token in np.argsort(-probabilities):
        kept.add(int(token))
        total += probabilities[token]
        if total >= p:
            return kept
    return kept


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 0.97))
def test_the_nucleus_is_what_sorting_finds(seed, p):
    logits_V = 3 * np.random.default_rng(seed).normal(size=23)
    found = np.asarray(NUCLEUS(logits_V[None], p))[0]
    kept = set(np.flatnonzero(np.isfinite(found)).tolist())
    expected = sorted_nucleus(logits_V, p)
    # The last one may go or stay where rounding decides whether p is reached.
    assert kept == expected or len(kept ^ expected) == 1
    np.testing.assert_allclose(found[sorted(kept)], logits_V[sorted(kept)], rtol=1e-6)


def test_equals_stay_together_and_what_is_out_stays_out():
    logits = jnp.asarray([[-jnp.inf, 1.0, 1.0, 0.0, -jnp.inf]])
    assert np.isfinite(top_p_filter(logits, 0.1))[0].tolist() == [0, 1, 1, 0, 0]
    assert np.isfinite(top_p_filter(logits, 1.0))[0].tolist() == [0, 1, 1, 1, 0]
    assert np.isfinite(top_k_filter(logits, 1))[0].tolist() == [0, 1, 1, 0, 0]
    assert np.isfinite(top_k_filter(logits, 99))[0].tolist() == [0, 1, 1, 1, 0]
