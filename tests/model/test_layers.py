"""Attention, feed-forward network, embedding and sub-layer: what they own and drop."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax.errors import InvalidRngError
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.masks import Segments
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.embedding import Embedding
from t2t_jax.model.feed_forward import FeedForward
from t2t_jax.model.initializers import declare, glorot_uniform, normal
from t2t_jax.model.sublayer import AddAndNorm, Dropout
from tests.model.tiny import TINY

# Linen's own has one depth for keys and values, and needs it to divide the width.
CONFIG = dataclasses.replace(TINY, d_model=15, d_k=5, d_v=5, positions="learned")
Q = jax.random.normal(jax.random.key(0), (2, 7, 15))
MEMORY = jax.random.normal(jax.random.key(1), (2, 11, 15))
SEGMENTS = Segments(
    *(jnp.arange(2 * size).reshape(2, size) * 5 % 7 % 2 + 1 for size in (7, 11))
)
X = jax.random.normal(jax.random.key(2), (3, 5, TINY.d_model))


def attend(module, x, memory, segments, rows=None):
    return module(x, module.keys_values(memory), segments=segments, rows_B=rows)


def initialise(config):
    nothing, one = jnp.zeros((1, 1, config.d_model)), jnp.ones((1, 1), int)
    return jax.jit(MultiHeadAttention(config).init, static_argnames="method")(
        *(jax.random.key(3), nothing, nothing, Segments(one, one)), method=attend
    )


def test_attention_equals_linens_with_the_same_weights():
    variables = initialise(CONFIG)
    assert set(variables) == {"params"}
    linen = nn.MultiHeadDotProductAttention(
        num_heads=3, qkv_features=15, out_features=15, use_bias=False
    )
    params = dict(variables["params"])
    params["out"] = params.pop("output")
    theirs = linen.apply({"params": params}, Q, MEMORY, mask=SEGMENTS.mask())
    ours = MultiHeadAttention(CONFIG).apply(
        variables, Q, MEMORY, SEGMENTS, method=attend
    )
    assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)  # float32 sums over 15


def test_glorot_counts_the_heads_as_one_matrix():
    config = dataclasses.replace(
        TINY, d_model=110, num_heads=7, d_k=11, d_v=13, vocab_size=2
    )
    params = initialise(config)["params"]
    for name, columns in [("query", 7 * 11), ("value", 7 * 13), ("output", 7 * 13)]:
        kernel = np.abs(params[name]["kernel"])
        limit = np.sqrt(6 / (110 + columns))
        assert 0.99 * limit < kernel.max() <= limit


def test_attention_dropout_drops_weights_and_is_off_without_rows():
    module = MultiHeadAttention(dataclasses.replace(CONFIG, attention_dropout=0.5))
    variables = initialise(CONFIG)

    def apply(rows, seed, module=module):
        how = {"method": attend, "rngs": {"dropout": jax.random.key(seed)}}
        return module.apply(variables, Q, MEMORY, SEGMENTS, rows, **how)

    plain = apply(None, 0, MultiHeadAttention(CONFIG))
    assert_array_equal(apply(None, 0), plain)
    rows = jnp.arange(2)
    assert (apply(rows, 0) != plain).any()
    mean = jax.jit(jax.vmap(partial(apply, rows)))(jnp.arange(200)).mean(axis=0)
    assert np.abs(mean - plain).mean() < 0.2 * np.abs(apply(rows, 0) - plain).mean()


def test_relu_dropout_acts_on_the_inner_layer_only():
    config = dataclasses.replace(TINY, relu_dropout=0.5)
    params = {
        "inner": {"kernel": jnp.zeros((14, 19)), "bias": jnp.ones(19)},
        "outer": {"kernel": jnp.eye(19, 14), "bias": jnp.full(14, 100.0)},
    }
    keys = {"dropout": jax.random.key(0)}
    y = FeedForward(config).apply({"params": params}, X, jnp.arange(3), rngs=keys)
    assert set(np.unique(y)) == {100.0, 102.0}


def test_only_the_sublayers_output_is_dropped():
    config = dataclasses.replace(TINY, dropout=0.5, norm_position="pre")
    params = {"scale": jnp.ones(14), "bias": jnp.zeros(14)}
    keys = {"dropout": jax.random.key(0)}
    y = AddAndNorm(config).apply(
        {"params": params}, X, jnp.ones_like, rows_B=jnp.arange(3), rngs=keys
    )
    difference = np.asarray(y - X)
    kept = difference > 1
    assert 0.3 < kept.mean() < 0.7
    assert_allclose(difference, 2.0 * kept, atol=1e-5)


def test_dropout_needs_rows_and_a_key():
    assert_array_equal(Dropout(0.5).apply({}, X, None), X)
    with pytest.raises(InvalidRngError, match="dropout"):
        Dropout(0.5).apply({}, X, jnp.arange(3))


def test_the_table_starts_with_a_deviation_of_one_over_root_d_model():
    embedding, tokens = Embedding(1009, 64, "bfloat16"), jnp.arange(1009)[None]
    variables = embedding.init(jax.random.key(0), tokens)
    table = variables["params"]["table"]
    assert (table.shape, table.dtype) == ((1009, 64), jnp.float32)
    assert_allclose(table.std(), 1 / 8, rtol=0.02)  # 4 standard errors are 0.011
    vectors = embedding.apply(variables, tokens)
    assert_allclose(vectors.astype(float).std(), 1, rtol=0.02)
    assert vectors.dtype == jnp.bfloat16
    assert embedding.apply(variables, vectors, method="logits").dtype == jnp.float32


CALLS = []


def counted(key, shape, dtype):
    CALLS.append(shape)
    return jax.random.normal(key, shape, dtype)


class Owner(nn.Module):
    initializer: object = counted

    def setup(self):
        self.kernel = declare(self, "kernel", self.initializer, (3, 5))

    def __call__(self):
        return self.kernel


class FlaxOwner(Owner):
    def setup(self):
        self.kernel = self.param("kernel", self.initializer, (3, 5), jnp.float32)


def test_a_parameter_that_exists_is_not_initialized_again():
    CALLS.clear()
    variables = Owner().init(jax.random.key(7))
    assert variables["params"]["kernel"].dtype == jnp.float32
    assert CALLS == [(3, 5)]
    assert_array_equal(jax.jit(Owner().apply)(variables), variables["params"]["kernel"])
    assert CALLS == [(3, 5)]
    other = {"params": {"kernel": np.ones((3, 7), np.float32)}}
    with pytest.raises(ValueError, match=r"params/kernel .*\(3, 5\), and has \(3, 7\)"):
        Owner().apply(other)


@pytest.mark.parametrize("initializer", [glorot_uniform(), normal(0.5)])
def test_initial_values_are_those_of_flax(initializer):
    ours, flax = (
        owner(initializer).init(jax.random.key(7)) for owner in (Owner, FlaxOwner)
    )
    jax.tree.map(assert_array_equal, ours, flax)
