"""The losses of SimCut and R-Drop against NumPy, with gradients by finite differences.

Seen to fail: with the gradient through one side only, with the divergence the other way
round, with padding counted, without p - q in the symmetric gradient, and with chunks
that ignore their cotangent.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.functional.consistency_loss import (
    chunked_consistency_sums,
    consistency_sums,
    divergence,
)
from t2t_jax.functional.embedding import logits

B, T, D, V = 2, 7, 5, 11
DRAW = np.random.default_rng(17)
FIRST, OTHER = (DRAW.normal(size=(B, T, V)) * 2 for _ in range(2))
TARGETS = DRAW.integers(V, size=(B, T))
REAL = DRAW.random((B, T)) < 0.7


def log_softmax(z):
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def kl(p, q):
    """Computes KL(p || q) of two arrays of logits, in float64."""
    log_p, log_q = log_softmax(p), log_softmax(q)
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)


def cross_entropy(z, smoothing):
    wanted = (1 - smoothing) * np.eye(V)[TARGETS] + smoothing / V
    return -(wanted * log_softmax(z)).sum(-1)


def simcut(first, other, *, alpha, smoothing):
    """Computes the loss of Gao et al.: CE(p) + alpha KL(p || q), over real tokens."""
    terms = cross_entropy(first, smoothing) + alpha * kl(first, other)
    return terms[REAL].sum()


def r_drop(first, other, *, alpha, smoothing):
    """Computes half the loss of Liang et al."""
    terms = cross_entropy(first, smoothing) + cross_entropy(other, smoothing)
    terms = terms + alpha * (kl(first, other) + kl(other, first)) / 2
    return terms[REAL].sum() / 2


def slopes(function, x, step=1e-5):
    """Differentiates a function of an array by central differences."""
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[index] = step
        found[index] = (function(x + nudge) - function(x - nudge)) / (2 * step)
    return found


WORDS = jnp.asarray(TARGETS)
REST = {"real_x": jnp.asarray(REAL), "label_smoothing": 0.1}
LOSSES = [
    (simcut, {"weight": 3.0, "symmetric": False}, 3.0),
    (r_drop, {"weight": 2.5, "symmetric": True}, 5.0),
]


@pytest.mark.parametrize(("expected", "options", "alpha"), LOSSES)
def test_loss_and_gradients_of_both_passes_are_as_published(expected, options, alpha):
    def objective(first, other):
        sums = consistency_sums(first, other, WORDS, **REST, **options)
        return sums.objective, sums

    arrays = [jnp.asarray(z, jnp.float32) for z in (FIRST, OTHER)]
    with_gradient = jax.value_and_grad(objective, argnums=(0, 1), has_aux=True)
    (found, sums), gradients = jax.jit(with_gradient)(*arrays)
    wanted = partial(expected, alpha=alpha, smoothing=0.1)
    assert_allclose(found, wanted(FIRST, OTHER), rtol=1e-5)  # float32
    # atol: central differences in float64 are good to 1e-9, float32 to 1e-6
    of_first = slopes(lambda z: wanted(z, OTHER), FIRST)
    assert_allclose(gradients[0], of_first, atol=3e-6)
    of_other = slopes(lambda z: wanted(FIRST, z), OTHER)
    assert_allclose(gradients[1], of_other, atol=3e-6)
    # What is reported of the first pass is without the second one.
    assert_allclose(sums.nll, cross_entropy(FIRST, 0.0)[REAL].sum(), rtol=1e-5)
    assert sums.correct == (FIRST.argmax(-1) == TARGETS)[REAL].sum()
    parts = sums.loss + options["weight"] * sums.consistency
    assert_allclose(sums.objective, parts, rtol=1e-6)


def test_the_divergence_on_a_case_drawn_by_hand():
    p = jnp.log(jnp.array([[4.0, 2.0, 1.0, 1.0]]))  # 1/2, 1/4, 1/8, 1/8
    q = jnp.log(jnp.array([[2.0, 4.0, 1.0, 1.0]]))
    # (1/2) log 2 - (1/4) log 2, either way round
    assert_allclose(divergence(p, q), [np.log(2) / 4], rtol=1e-6)
    assert_allclose(divergence(p, q, symmetric=True), [np.log(2) / 4], rtol=1e-6)
    # 5/8 and three times 1/8 against 1/4 each: not the same the other way round
    p, q = jnp.log(jnp.array([[5.0, 1.0, 1.0, 1.0]])), jnp.zeros((1, 4))
    one = 5 / 8 * np.log(5 / 2) - 3 / 8 * np.log(2)
    two = -np.log(5 / 2) / 4 + 3 / 4 * np.log(2)
    assert_allclose(divergence(p, q), [one], rtol=1e-5)
    assert_allclose(divergence(q, p), [two], rtol=1e-5)
    assert_allclose(divergence(q, p, symmetric=True), [(one + two) / 2], rtol=1e-5)


def test_passes_that_agree_have_no_divergence_and_no_gradient():
    z = jnp.asarray(FIRST, jnp.float32)
    for symmetric in (False, True):
        total = partial(divergence, symmetric=symmetric)
        of = jax.value_and_grad(lambda p, q, of=total: of(p, q).sum(), argnums=(0, 1))
        found, gradients = jax.jit(of)(z, z)
        assert found == 0.0
        for gradient in gradients:
            assert_allclose(gradient, np.zeros_like(FIRST), atol=1e-6)


def test_bfloat16_logits_are_summed_in_float32():
    z = jnp.asarray(FIRST, jnp.bfloat16)
    assert divergence(z, z[::-1]).dtype == jnp.float32
    assert jax.grad(lambda p: divergence(p, z[::-1]).sum())(z).dtype == jnp.bfloat16
    assert np.isfinite(divergence(jnp.array([[1e4, -1e4]]), jnp.array([[-1e4, 1e4]])))


Y = [jnp.asarray(DRAW.normal(size=(B, T, D)), jnp.float32) for _ in range(2)]
TABLE = jnp.asarray(DRAW.normal(size=(V, D)), jnp.float32)
BIAS = jnp.asarray(DRAW.normal(size=V), jnp.float32)


def in_chunks(first, other, weights, **options):
    options |= {"words": (WORDS, jnp.asarray(REAL)), "label_smoothing": 0.1}
    sums = chunked_consistency_sums(first, other, weights, **options)
    return 3 * sums.objective, sums


def at_once(first, other, weights, **options):
    of_both = (logits(y, *weights) for y in (first, other))
    sums = consistency_sums(*of_both, WORDS, **REST, **options)
    return 3 * sums.objective, sums


@pytest.mark.parametrize(
    ("chunks", "options"),
    [(1, LOSSES[0][1]), (3, LOSSES[1][1]), (T + 2, LOSSES[0][1])],
    ids=str,
)
def test_chunks_of_both_passes_give_what_all_logits_give(chunks, options):
    def of(function):
        gradients = jax.value_and_grad(function, argnums=(0, 1, 2), has_aux=True)
        return jax.jit(gradients)(*Y, (TABLE, BIAS))

    found = of(partial(in_chunks, chunks=chunks, **options))
    expected = of(partial(at_once, **options))
    # float32 sums of 14 tokens in another order
    jax.tree.map(partial(assert_allclose, rtol=1e-5, atol=2e-5), found, expected)


def test_shapes_that_do_not_agree_are_refused():
    with pytest.raises(ValueError, match=r"one shape; they have \[2, 7, 11\] and"):
        divergence(jnp.asarray(FIRST), jnp.asarray(OTHER)[:, 1:])
    with pytest.raises(ValueError, match=r"other must be \[B, T, D\]"):
        in_chunks(Y[0], Y[1][:, 1:], (TABLE, None), chunks=2, weight=1, symmetric=True)
