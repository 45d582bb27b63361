import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.attention import MultiHeadAttention
from tests.model.tiny import TINY

# Linen's own has one depth for keys and values, and needs it to divide the width.
CONFIG = dataclasses.replace(TINY, d_model=15, d_k=5, d_v=5, positions="learned")
X = jax.random.normal(jax.random.key(0), (2, 7, 15))
MEMORY = jax.random.normal(jax.random.key(1), (2, 11, 15))
MASK = jax.random.bernoulli(jax.random.key(2), 0.5, (2, 1, 7, 11)).at[..., 0].set(True)


def attend(module, x, memory, mask, rows=None):
    return module(x, module.keys_values(memory), mask_Bx1xQxK=mask, rows_B=rows)


def initialise(config):
    return jax.jit(MultiHeadAttention(config).init, static_argnames="method")(
        jax.random.key(3),
        jnp.zeros((1, 1, config.d_model)),
        jnp.zeros((1, 1, config.d_model)),
        jnp.ones((1, 1, 1, 1), bool),
        method=attend,
    )


def test_it_equals_linens_with_the_same_weights():
    variables = initialise(CONFIG)
    linen = nn.MultiHeadDotProductAttention(
        num_heads=3, qkv_features=15, out_features=15, use_bias=False
    )
    params = dict(variables["params"])
    params["out"] = params.pop("output")
    theirs = linen.apply({"params": params}, X, MEMORY, mask=MASK)
    ours = MultiHeadAttention(CONFIG).apply(variables, X, MEMORY, MASK, method=attend)
    assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)  # float32 sums over 15


def test_keys_and_values_may_have_depths_of_their_own():
    shapes = jax.tree.map(jnp.shape, initialise(TINY)["params"])
    assert shapes == {
        "query": {"kernel": (14, 3, 5)},
        "key": {"kernel": (14, 3, 5)},
        "value": {"kernel": (14, 3, 7)},
        "output": {"kernel": (3, 7, 14)},
    }


def test_glorot_counts_the_heads_as_one_matrix():
    config = dataclasses.replace(
        TINY, d_model=110, num_heads=7, d_k=11, d_v=13, vocab_size=2
    )
    params = initialise(config)["params"]
    for name, columns in [("query", 7 * 11), ("value", 7 * 13), ("output", 7 * 13)]:
        kernel = np.abs(params[name]["kernel"])
        limit = np.sqrt(6 / (110 + columns))
        assert 0.99 * limit < kernel.max() <= limit


def test_weights_can_be_looked_at():
    variables = initialise(CONFIG)
    _, state = MultiHeadAttention(CONFIG).apply(
        variables, X, MEMORY, MASK, method=attend, mutable=["intermediates"]
    )
    (weights,) = state["intermediates"]["weights"]
    assert weights.shape == (2, 3, 7, 11)
    assert_allclose(weights.sum(-1), np.ones((2, 3, 7)), rtol=1e-6)
    blocked = np.broadcast_to(~np.asarray(MASK), weights.shape)
    assert (np.asarray(weights)[blocked] == 0).all()


def test_initialising_returns_nothing_but_parameters():
    assert set(initialise(TINY)) == {"params"}


def test_attention_dropout_drops_weights_and_is_off_without_rows():
    config = dataclasses.replace(CONFIG, attention_dropout=0.5)
    variables = initialise(config)
    module = MultiHeadAttention(config)

    def apply(rows, seed):
        return module.apply(
            variables,
            X,
            MEMORY,
            MASK,
            rows,
            method=attend,
            rngs={"dropout": jax.random.key(seed)},
        )

    plain = MultiHeadAttention(CONFIG).apply(variables, X, MEMORY, MASK, method=attend)
    assert_array_equal(apply(None, 0), plain)
    rows = jnp.arange(2)
    assert (apply(rows, 0) != plain).any()
    mean = sum(apply(rows, seed) for seed in range(200)) / 200
    assert np.abs(mean - plain).mean() < 0.2 * np.abs(apply(rows, 0) - plain).mean()
