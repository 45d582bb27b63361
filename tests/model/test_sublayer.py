import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.errors import InvalidRngError
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.sublayer import AddAndNorm, Dropout, LayerNorm
from tests.model.tiny import TINY

X = jax.random.normal(jax.random.key(2), (3, 5, TINY.d_model))
PARAMS = {"scale": jnp.arange(1.0, 15), "bias": jnp.arange(14.0)}


def normed(x):
    x = np.asarray(x, np.float64)
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    return x * np.asarray(PARAMS["scale"]) + np.asarray(PARAMS["bias"])


def add_and_norm(config, sublayer, rows=None, key=0):
    return AddAndNorm(config).apply(
        {"params": PARAMS},
        X,
        sublayer,
        rows_B=rows,
        rngs={"dropout": jax.random.key(key)},
    )


def test_post_norm_normalises_the_sum():
    y = add_and_norm(TINY, lambda x: 3 * x + 1)
    assert_allclose(y, normed(4 * np.asarray(X) + 1), rtol=1e-4, atol=1e-4)  # epsilon


def test_pre_norm_normalises_what_enters_and_leaves_the_residual_alone():
    y = add_and_norm(dataclasses.replace(TINY, norm_position="pre"), lambda x: 3 * x)
    assert_allclose(y, np.asarray(X) + 3 * normed(X), rtol=1e-4, atol=1e-4)


def test_only_the_sublayers_output_is_dropped():
    config = dataclasses.replace(TINY, dropout=0.5, norm_position="pre")
    y = add_and_norm(config, jnp.ones_like, jnp.arange(3))
    difference = np.asarray(y - X)
    kept = difference > 1
    assert 0.3 < kept.mean() < 0.7
    assert_allclose(difference, 2.0 * kept, atol=1e-5)


def test_parameters_belong_to_the_box_itself():
    variables = AddAndNorm(TINY).init(jax.random.key(0), X, lambda x: x, rows_B=None)
    assert jax.tree.map(jnp.shape, variables) == {
        "params": {"scale": (14,), "bias": (14,)}
    }


def test_a_fresh_norm_only_normalises():
    variables = LayerNorm(TINY).init(jax.random.key(0), X)
    y = LayerNorm(TINY).apply(variables, X)
    assert_allclose(y.mean(-1), np.zeros((3, 5)), atol=1e-6)
    assert_allclose(y.std(-1), np.ones((3, 5)), rtol=1e-5)


def test_no_rows_means_no_dropout_and_no_key():
    assert_array_equal(Dropout(0.5).apply({}, X, None), X)


def test_dropout_without_a_key_is_an_error():
    with pytest.raises(InvalidRngError, match="dropout"):
        Dropout(0.5).apply({}, X, jnp.arange(3))


def test_legacy_keys_drop_like_typed_ones():
    typed, legacy = jax.random.key(7), jax.random.PRNGKey(7)
    typed, legacy = (
        Dropout(0.5).apply({}, X, jnp.arange(3), rngs={"dropout": key})
        for key in (typed, legacy)
    )
    assert_array_equal(typed, legacy)
