import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from t2t_jax.model.feed_forward import FeedForward
from tests.model.tiny import TINY

X = jax.random.normal(jax.random.key(0), (2, 5, 14))


def test_it_owns_two_matrices_and_two_biases():
    variables = FeedForward(TINY).init(jax.random.key(1), X, None)
    assert jax.tree.map(jnp.shape, variables) == {
        "params": {
            "inner": {"kernel": (14, 19), "bias": (19,)},
            "outer": {"kernel": (19, 14), "bias": (14,)},
        }
    }
    assert (variables["params"]["inner"]["bias"] == 0).all()


def test_each_weight_is_where_equation_2_has_it():
    keys = jax.random.split(jax.random.key(2), 4)
    shapes = [(14, 19), (19,), (19, 14), (14,)]
    w1, b1, w2, b2 = (
        jax.random.normal(k, s) for k, s in zip(keys, shapes, strict=True)
    )
    params = {
        "inner": {"kernel": w1, "bias": b1},
        "outer": {"kernel": w2, "bias": b2},
    }
    x, w1, b1, w2, b2 = (np.asarray(a, np.float64) for a in (X, w1, b1, w2, b2))
    expected = np.maximum(0, x @ w1 + b1) @ w2 + b2
    y = FeedForward(TINY).apply({"params": params}, X, None)
    assert_allclose(y, expected, rtol=1e-4, atol=1e-4)  # float32 sums over 19


def test_relu_dropout_acts_on_the_inner_layer_only():
    config = dataclasses.replace(TINY, relu_dropout=0.5)
    params = {
        "inner": {"kernel": jnp.zeros((14, 19)), "bias": jnp.ones(19)},
        "outer": {"kernel": jnp.eye(19, 14), "bias": jnp.full(14, 100.0)},
    }
    y = FeedForward(config).apply(
        {"params": params}, X, jnp.arange(2), rngs={"dropout": jax.random.key(0)}
    )
    assert set(np.unique(y)) == {100.0, 102.0}
