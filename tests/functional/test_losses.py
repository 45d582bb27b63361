from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.functional.losses import (
    _reductions,
    _reductions_in_one_read,
    label_smoothed_nll,
)

LOGITS = jax.random.normal(jax.random.key(3), (2, 5, 7)) * 3
TARGETS = jnp.array([[0, 1, 2, 3, 4], [6, 5, 4, 3, 2]])


def test_smoothing_on_a_case_drawn_by_hand():
    # softmax = [1/2, 1/4, 1/8, 1/8]; the target distribution for eps 0.4 is
    # [0.1, 0.7, 0.1, 0.1].
    logits = jnp.log(jnp.array([[4.0, 2.0, 1.0, 1.0]]))
    loss, nll = label_smoothed_nll(logits, jnp.array([1]), label_smoothing=0.4)
    bits = 0.1 * 1 + 0.7 * 2 + 0.1 * 3 + 0.1 * 3
    assert_allclose(loss, [bits * np.log(2)], rtol=1e-6)
    assert_allclose(nll, [2 * np.log(2)], rtol=1e-6)


def test_it_equals_cross_entropy_with_a_dense_smoothed_distribution():
    loss, nll = label_smoothed_nll(LOGITS, TARGETS, label_smoothing=0.1)
    log_p = np.asarray(jax.nn.log_softmax(LOGITS), np.float64)
    one_hot = np.eye(7)[np.asarray(TARGETS)]
    assert_allclose(loss, -((0.9 * one_hot + 0.1 / 7) * log_p).sum(-1), rtol=1e-5)
    assert_allclose(nll, -(one_hot * log_p).sum(-1), rtol=1e-5)


def test_the_gradient_is_softmax_minus_the_target_distribution():
    def total(logits):
        return label_smoothed_nll(logits, TARGETS, label_smoothing=0.2)[0].sum()

    wanted = 0.8 * np.eye(7)[np.asarray(TARGETS)] + 0.2 / 7
    expected = np.asarray(jax.nn.softmax(LOGITS)) - wanted
    assert_allclose(jax.grad(total)(LOGITS), expected, atol=1e-6)


def test_large_logits_stay_finite_and_bfloat16_ones_are_summed_in_float32():
    large = jnp.array([[1e4, -1e4]])
    loss, nll = label_smoothed_nll(large, jnp.array([1]), label_smoothing=0.1)
    assert_allclose(nll, [2e4], rtol=1e-6)
    assert_allclose(loss, [0.95 * 2e4], rtol=1e-6)
    loss, _ = label_smoothed_nll(LOGITS.astype(jnp.bfloat16), TARGETS)
    assert loss.dtype == jnp.float32


@pytest.mark.parametrize("reduce", [_reductions, _reductions_in_one_read])
def test_targets_of_a_small_type_mark_one_word_of_a_large_vocabulary(reduce):
    logits = jax.random.normal(jax.random.key(5), (1, 300))

    def found(dtype):
        targets = jnp.array([5], dtype)
        total = jax.grad(lambda z: label_smoothed_nll(z, targets)[0].sum())
        return (total(logits), *reduce(logits, targets))

    jax.tree.map(np.testing.assert_array_equal, found(jnp.uint8), found(jnp.int32))


def test_targets_of_another_shape_and_a_smoothing_beyond_1_are_refused():
    with pytest.raises(ValueError, match=r"targets must have .* \[2, 5\]; .* \[5, 2\]"):
        label_smoothed_nll(LOGITS, TARGETS.T)
    with pytest.raises(ValueError, match=r"label_smoothing=1.5 must be in \[0, 1\]"):
        label_smoothed_nll(LOGITS, TARGETS, label_smoothing=1.5)


@pytest.mark.parametrize(
    "logits",
    [
        LOGITS,
        LOGITS * 1e4,
        LOGITS.astype(jnp.bfloat16).astype(jnp.float32),  # with ties
        LOGITS[..., :1],
        LOGITS.at[:, :, 2:4].set(-jnp.inf),
    ],
)
def test_accelerators_read_the_logits_once_for_the_same_numbers(logits):
    targets = jnp.minimum(TARGETS, logits.shape[-1] - 1)
    ours = jax.jit(_reductions_in_one_read)(logits, targets)
    others = _reductions(logits, targets)
    jax.tree.map(partial(assert_allclose, rtol=1e-5, atol=1e-5), ours, others)
    assert ((ours[3] >= ours[0]) == (others[3] >= others[0])).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_it_is_differentiable_twice_under_jit(smoothing):
    def of_log_softmax(z):
        log_p = jax.nn.log_softmax(z)
        target = jnp.take_along_axis(log_p, TARGETS[..., None], axis=-1)[..., 0]
        return -(1 - smoothing) * target - smoothing * log_p.mean(axis=-1)

    def ours(z):
        return label_smoothed_nll(z, TARGETS, label_smoothing=smoothing)[0]

    def second(loss):
        first = jax.grad(lambda z: jnp.sin(loss(z)).sum())
        return jax.jit(jax.grad(lambda z: (first(z) ** 2).sum()))(LOGITS)

    assert_allclose(second(ours), second(of_log_softmax), rtol=2e-4, atol=1e-5)
