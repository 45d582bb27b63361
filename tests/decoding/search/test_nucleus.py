import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.decoding.search.top_k import top_k_filter, top_p_filter


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
    found = np.asarray(top_p_filter(jnp.asarray(logits_V)[None], p))[0]
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
