"""Layer normalization, used around every sub-layer (§3.1 of the paper)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.types import Array


def layer_norm(
    x_xD: Array, scale_D: Array, *, bias_D: Array, epsilon: float = 1e-6
) -> jax.Array:
    """Normalizes each vector to mean 0 and variance 1, then applies scale and bias.

    Args:
      epsilon: added to the variance, so that a constant vector gives the bias.

    Returns:
      [..., D] in the dtype of the input.

    Paper:
      §3.1 and its reference [1] (Ba et al.). The paper gives no epsilon; 1e-6 is that
      of its authors' code.

    Example:
      >>> x, one, zero = jnp.array([1.0, 3.0]), jnp.ones(2), jnp.zeros(2)
      >>> layer_norm(x, one, bias_D=zero).round(3).tolist()
      [-1.0, 1.0]
    """
    # A variance is a difference of close numbers: in bfloat16 it would be noise.
    x32_xD = jnp.asarray(x_xD, jnp.float32)
    mean_x1 = x32_xD.mean(axis=-1, keepdims=True)
    variance_x1 = jnp.square(x32_xD - mean_x1).mean(axis=-1, keepdims=True)
    normed_xD = (x32_xD - mean_x1) * jax.lax.rsqrt(variance_x1 + epsilon)
    leading = tuple(range(x_xD.ndim - 1))
    scale_xD = jnp.expand_dims(scale_D, leading)
    bias_xD = jnp.expand_dims(bias_D, leading)
    return (normed_xD * scale_xD + bias_xD).astype(x_xD.dtype)
