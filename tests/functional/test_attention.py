import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.functional.attention import (
    additive_attention_weights,
    attention,
    attention_weights,
)

LOG2 = float(np.log(2.0))


def _random(*shapes):
    keys = jax.random.split(jax.random.key(7), len(shapes))
    return [
        jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)
    ]


def test_equation_1_on_a_case_drawn_by_hand():
    # d_k = 4, so scores are halved: [0, log 2, log 4] and [0, 0, 0].
    q = jnp.array([[2 * LOG2, 0, 0, 0], [0, 0, 0, 0]])
    k = jnp.array([[0.0, 9, 0, 0], [1, 9, 0, 0], [2, 9, 0, 0]])
    v = jnp.array([[7.0, 0], [0, 7], [7, 7]])
    weights = [[1 / 7, 2 / 7, 4 / 7], [1 / 3, 1 / 3, 1 / 3]]
    assert_allclose(attention_weights(q, k), weights, rtol=1e-6)  # float32
    assert_allclose(attention(q, k, v), [[5, 6], [14 / 3, 14 / 3]], rtol=1e-6)


def test_a_masked_key_gets_exactly_nothing_and_the_others_share_the_rest():
    q, k = jnp.array([[2 * LOG2, 0, 0, 0]]), jnp.array([[0.0] * 4, [1] * 4, [2] * 4])
    weights = attention_weights(q, k, mask_xQxK=jnp.array([[True, False, True]]))
    assert_allclose(weights, [[1 / 5, 0, 4 / 5]], rtol=1e-6)
    assert weights[0, 1] == 0


def test_a_query_that_may_look_nowhere_gets_zeros_and_finite_gradients():
    q, k, v = _random((2, 5), (3, 5), (3, 7))
    mask = jnp.array([[False, False, False], [True, True, False]])

    def total(q, k, v):
        return jnp.square(attention(q, k, v, mask_xQxK=mask)).sum()

    assert (attention(q, k, v, mask_xQxK=mask)[0] == 0).all()
    gradients = jax.grad(total, argnums=(0, 1, 2))(q, k, v)
    assert all(jnp.isfinite(gradient).all() for gradient in gradients)
    assert (gradients[0][0] == 0).all()
    assert (gradients[0][1] != 0).any()


def test_softmax_is_taken_in_float32_whatever_the_inputs():
    q, k = (x.astype(jnp.bfloat16) for x in _random((2, 5), (600, 5)))
    weights = attention_weights(q, k)
    assert weights.dtype == jnp.float32
    assert_allclose(weights.sum(-1), [1, 1], rtol=1e-6)
    assert attention(q, k, k).dtype == jnp.bfloat16


def test_dropout_comes_between_softmax_and_values():
    q, k, v = _random((2, 5), (3, 5), (3, 7))
    doubled = attention(q, k, v, dropout=lambda weights: 2 * weights)
    assert_allclose(doubled, 2 * attention(q, k, v), rtol=1e-6)


def test_depths_that_differ_are_refused_by_name():
    with pytest.raises(ValueError, match=r"k must be .* Dk=5 \(as in q\)"):
        attention_weights(jnp.zeros((2, 5)), jnp.zeros((3, 7)))
    with pytest.raises(ValueError, match=r"v must be .* K=3 \(as in k\)"):
        attention(jnp.zeros((2, 5)), jnp.zeros((3, 5)), jnp.zeros((2, 7)))


def test_leading_axes_are_broadcast_and_their_gradients_added_up():
    q, k = _random((2, 3, 5, 7), (1, 3, 11, 7))

    def squares(q, k):
        return jnp.square(attention_weights(q, k)).sum()

    spread = jnp.broadcast_to(k, (2, 3, 11, 7))
    assert_allclose(squares(q, k), squares(q, spread), rtol=1e-6)  # float32
    of_spread = jax.grad(squares, argnums=1)(q, spread).sum(axis=0, keepdims=True)
    assert_allclose(jax.grad(squares, argnums=1)(q, k), of_spread, atol=1e-6)


B, Q, K, DK = 2, 3, 5, 7
RANDOM = np.random.default_rng(0)
QUERIES, KEYS, SCORE = (RANDOM.normal(size=s) for s in [(B, Q, DK), (B, K, DK), (DK,)])


def test_additive_attention_is_the_softmax_of_a_hidden_layers_scores_one_by_one():
    mask = RANDOM.random((B, Q, K)) < 0.6
    mask[1, 2] = False
    expected = np.zeros((B, Q, K))
    for b, q in np.ndindex(B, Q):
        scores = [SCORE @ np.tanh(QUERIES[b, q] + KEYS[b, k]) for k in range(K)]
        exps = np.where(mask[b, q], np.exp(scores), 0.0)
        expected[b, q] = exps / max(exps.sum(), 1e-9)
    weights = additive_attention_weights(QUERIES, KEYS, score_Dk=SCORE, mask_xQxK=mask)
    assert_allclose(weights, expected, atol=1e-6)  # float32 against float64


def test_additive_weights_are_float32_whatever_comes_in():
    low = [jnp.asarray(x, jnp.bfloat16) for x in (QUERIES, KEYS, SCORE)]
    weights = additive_attention_weights(low[0], low[1], score_Dk=low[2])
    assert weights.dtype == jnp.float32
    assert_allclose(weights.sum(-1), 1, rtol=1e-6)


def test_a_score_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"score must be \[Dk\] with Dk=7"):
        additive_attention_weights(QUERIES, KEYS, score_Dk=SCORE[:6])
