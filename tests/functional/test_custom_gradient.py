"""Custom gradients: forward mode is the transpose of reverse mode, however composed.

Seen to fail: with the tangent of a bool left in, and without the rule of batching.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.functional.consistency_loss import divergence
from t2t_jax.functional.dropout import dropout
from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.functional.layer_norm import layer_norm
from t2t_jax.functional.losses import label_smoothed_nll
from t2t_jax.model.transformer import Transformer
from t2t_jax.training.loss import forward_loss
from tests.training.copy_task import CONFIG, batches

BF16 = jnp.bfloat16
TARGETS = jnp.array([2, 0, 5])


def norm(x, scale):
    return layer_norm(x, scale, bias_D=jnp.zeros(7))


def dropped(x, y):
    key, rows = jax.random.key(0), jnp.arange(3)
    return dropout(x, rate=0.5, key=key, rows_B=rows) * y[None]


def smoothed(x, y):
    loss, nll = label_smoothed_nll(x, TARGETS, label_smoothing=0.1)
    return loss * y[:3] + nll


# function of x [3, 7] and y [7], and the dtype of x
FUNCTIONS = {
    "loss": (smoothed, jnp.float32),
    "loss in bfloat16": (smoothed, BF16),
    "norm": (norm, BF16),
    "product": (lambda x, y: einsum_f32("bd,d->b", x, y), BF16),
    "dropout": (dropped, BF16),
    "divergence": (
        lambda x, y: divergence(x, x * y[None], symmetric=True),
        jnp.float32,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_agrees_with_reverse_mode(name):
    function, dtype = FUNCTIONS[name]
    rtol = 1e-5 if dtype == jnp.float32 else 2e-2  # 8 bits, of sums of some terms
    x, dx = jax.random.normal(jax.random.key(0), (2, 3, 7), dtype)
    y, dy = jax.random.normal(jax.random.key(1), (2, 7))

    def total(x, y):
        return jnp.sum(jnp.asarray(function(x, y), jnp.float32))

    def dot(a, b):
        return jnp.sum(jnp.asarray(a, jnp.float32) * jnp.asarray(b, jnp.float32))

    gx, gy = jax.grad(total, argnums=(0, 1))(x, y)
    expected = dot(gx, dx) + dot(gy, dy)
    for jvp in (jax.jvp, jax.jit(jax.jvp, static_argnums=0)):
        _, found = jvp(total, (x, y), (dx, dy))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    forward = jax.jacfwd(total, argnums=1)(x, y)
    np.testing.assert_allclose(forward, gy, rtol=rtol, atol=rtol)
    # Batched before it is differentiated, and after.
    weights = jnp.stack([y, dy])
    inside = jax.grad(lambda w: jax.vmap(total, (None, 0))(x, w).sum())(weights)
    outside = jax.vmap(jax.grad(total, argnums=1), (None, 0))(x, weights)
    np.testing.assert_allclose(inside, outside, rtol=rtol, atol=rtol)
    # Twice, in each order.
    if dtype == jnp.float32:
        twice = [
            outer(inner(total, argnums=1), argnums=1)(x, y)
            for outer in (jax.jacfwd, jax.jacrev)
            for inner in (jax.jacfwd, jax.jacrev)
        ]
        for hessian in twice[1:]:
            np.testing.assert_allclose(hessian, twice[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_loss_of_a_transformer_has_a_directional_derivative(dtype):
    module = Transformer(dataclasses.replace(CONFIG, compute_dtype=dtype))
    batch = next(iter(batches(1)))
    params = module.init(jax.random.key(0), batch.source, batch.target_inputs)["params"]

    @jax.jit
    def loss(params):
        key = jax.random.key(1)
        return forward_loss(
            module, params, batch, label_smoothing=0.1, dropout_key=key
        ).loss

    direction = jax.tree.map(lambda p: jnp.cos(7 * p), params)
    _, found = jax.jvp(loss, (params,), (direction,))
    products = jax.tree.map(
        lambda g, d: jnp.sum(g * d), jax.grad(loss)(params), direction
    )
    expected = sum(jax.tree.leaves(products))
    np.testing.assert_allclose(
        found, expected, rtol=1e-4 if dtype == "float32" else 0.05
    )
