"""The position-wise feed-forward network: equation 2 of the paper."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.types import Array

ACTIVATIONS: Mapping[str, Callable[[jax.Array], jax.Array]] = {
    "relu": jax.nn.relu,
    "swish": jax.nn.swish,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "quick_gelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
}
"""The paper's max(0, x); x sigmoid(x); x Phi(x), and its approximation."""


def feed_forward(
    x_xD: Array,
    *,
    w1_DxF: Array,
    b1_F: Array,
    w2_FxD: Array,
    b2_D: Array,
    dropout: Callable[[jax.Array], jax.Array] | None = None,
    activation: str = "relu",
) -> jax.Array:
    """Computes FFN(x) = max(0, x W1 + b1) W2 + b2 at each position.

    Args:
      dropout: applied after the activation; None for no dropout.
      activation: of `ACTIVATIONS`.

    Returns:
      [..., D] in the dtype of the input. The weights are cast to it.

    Paper: §3.3, equation 2.

    Departs:
      The paper has no dropout inside the network, and only the ReLU max(0, x).

    Example:
      >>> eye, zero = jnp.eye(2), jnp.zeros(2)
      >>> x = jnp.array([3.0, -4.0])
      >>> feed_forward(x, w1_DxF=eye, b1_F=zero, w2_FxD=-eye, b2_D=zero + 1).tolist()
      [-2.0, 1.0]
    """
    inner_xF = ACTIVATIONS[activation](affine(x_xD, w1_DxF, b1_F))
    if dropout is not None:
        inner_xF = dropout(inner_xF)
    return affine(inner_xF, w2_FxD, b2_D)


def affine(x_xD: Array, w_DxE: Array, b_E: Array | None = None) -> jax.Array:
    """Computes x W + b over the last axis; x W without b."""
    # One product of all tokens: with several leading axes XLA:CPU copies more for the
    # gradients, and the network takes a fifth longer.
    x_LxD = jnp.asarray(x_xD).reshape(-1, x_xD.shape[-1])
    y_LxE = einsum_f32("ld,de->le", x_LxD, w_DxE)
    if b_E is not None:
        # Cast after the broadcast: its gradient sums over all tokens in its own dtype.
        y_LxE = y_LxE + jnp.broadcast_to(b_E, y_LxE.shape).astype(y_LxE.dtype)
    return y_LxE.reshape(*x_xD.shape[:-1], w_DxE.shape[-1])
