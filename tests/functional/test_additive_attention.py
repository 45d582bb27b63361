import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.additive_attention import additive_attention_weights

B, Q, K, DK = 2, 3, 5, 7
RANDOM = np.random.default_rng(0)
QUERIES, KEYS, SCORE = (RANDOM.normal(size=s) for s in [(B, Q, DK), (B, K, DK), (DK,)])
MASK = RANDOM.random((B, Q, K)) < 0.6
MASK[1, 2] = False


def test_it_is_the_softmax_of_a_hidden_layers_scores_one_by_one():
    expected = np.zeros((B, Q, K))
    for b, q in np.ndindex(B, Q):
        scores = [SCORE @ np.tanh(QUERIES[b, q] + KEYS[b, k]) for k in range(K)]
        exps = np.where(MASK[b, q], np.exp(scores), 0.0)
        expected[b, q] = exps / max(exps.sum(), 1e-9)
    weights = additive_attention_weights(QUERIES, KEYS, score_Dk=SCORE, mask_xQxK=MASK)
    assert_allclose(weights, expected, atol=1e-6)  # float32 against float64


def test_a_query_that_may_look_nowhere_gets_zeros_and_finite_gradients():
    def total(queries, keys, score):
        weights = additive_attention_weights(
            queries, keys, score_Dk=score, mask_xQxK=MASK
        )
        return (weights**2).sum(), weights

    gradients, weights = jax.grad(total, argnums=(0, 1, 2), has_aux=True)(
        QUERIES, KEYS, SCORE
    )
    assert_array_equal(weights[1, 2], 0)
    assert_array_equal(gradients[0][1, 2], 0)
    assert all(jnp.isfinite(gradient).all() for gradient in gradients)


def test_weights_are_float32_whatever_comes_in():
    low = [jnp.asarray(x, jnp.bfloat16) for x in (QUERIES, KEYS, SCORE)]
    weights = additive_attention_weights(low[0], low[1], score_Dk=low[2])
    assert weights.dtype == jnp.float32
    assert_allclose(weights.sum(-1), 1, rtol=1e-6)


def test_a_score_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"score must be \[Dk\] with Dk=7"):
        additive_attention_weights(QUERIES, KEYS, score_Dk=SCORE[:6])
