"""Layer normalization, used around every sub-layer (§3.1 of the paper)."""

from __future__ import annotations

import functools
from typing import TypeAlias

import jax
import jax.numpy as jnp

from t2t_jax.types import Array


def layer_norm(
    x_xD: Array, scale_D: Array, *, bias_D: Array, epsilon: float = 1e-6
) -> jax.Array:
    """Normalizes each vector to mean 0 and variance 1, then applies scale and bias.

    Unless the input is float32, the gradient is custom: reverse mode only.

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
    leading = tuple(range(x_xD.ndim - 1))
    scale_xD, bias_xD = (jnp.expand_dims(v_D, leading) for v_D in (scale_D, bias_D))
    x_xD = jnp.asarray(x_xD)
    scaled_xD = scaled_norm(x_xD, scale_xD, epsilon, centered=True)
    return (scaled_xD + bias_xD).astype(x_xD.dtype)


def scaled_norm(
    x_xD: jax.Array, scale_xD: jax.Array, epsilon: float, *, centered: bool
) -> jax.Array:
    """Divides by the deviation from the mean or, not `centered`, from 0; then scales.

    Returns:
      [..., D] float32. Unless the input is float32, the gradient is custom.
    """
    if x_xD.dtype == jnp.float32:
        return _forward(x_xD, scale_xD, epsilon, centered)[0]
    return _scaled_norm(x_xD, scale_xD, epsilon, centered)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _scaled_norm(
    x_xD: jax.Array, scale_xD: jax.Array, epsilon: float, centered: bool
) -> jax.Array:
    return _forward(x_xD, scale_xD, epsilon, centered)[0]


_Residuals: TypeAlias = tuple[jax.Array, jax.Array, jax.Array | None, jax.Array]
"""Input, scale, the mean if it was subtracted, and one over the deviation."""


def _forward(
    x_xD: jax.Array, scale_xD: jax.Array, epsilon: float, centered: bool
) -> tuple[jax.Array, _Residuals]:
    # A variance is a difference of close numbers: in bfloat16 it would be noise.
    x32_xD = x_xD.astype(jnp.float32)
    mean_x1 = x32_xD.mean(axis=-1, keepdims=True) if centered else None
    square_x1 = jnp.square(_minus(x32_xD, mean_x1)).mean(axis=-1, keepdims=True)
    inverse_x1 = jax.lax.rsqrt(square_x1 + epsilon)
    normed_xD = _minus(x32_xD, mean_x1) * inverse_x1
    return normed_xD * scale_xD, (x_xD, scale_xD, mean_x1, inverse_x1)


def _minus(x_xD: jax.Array, mean_x1: jax.Array | None) -> jax.Array:
    return x_xD if mean_x1 is None else x_xD - mean_x1


def _backward(
    epsilon: float, centered: bool, residuals: _Residuals, cotangent_xD: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Differentiates from the statistics that are kept.

    XLA would compute them again, and for the gradient of the scale store the normed
    vectors times the cotangent, in float32.
    """
    del epsilon  # within the statistics
    x_xD, scale_xD, mean_x1, inverse_x1 = residuals
    mean_x1, inverse_x1 = jax.lax.optimization_barrier((mean_x1, inverse_x1))
    normed_xD = _minus(x_xD.astype(jnp.float32), mean_x1) * inverse_x1
    along_xD = cotangent_xD * scale_xD
    product_xD = along_xD * normed_xD
    mean_along_x1 = along_xD.mean(axis=-1, keepdims=True) if centered else None
    mean_normed_x1 = product_xD.mean(axis=-1, keepdims=True)
    dx_xD = inverse_x1 * (_minus(along_xD, mean_along_x1) - normed_xD * mean_normed_x1)
    tokens = tuple(range(x_xD.ndim - 1))
    dscale_xD = (cotangent_xD * normed_xD).sum(axis=tokens, keepdims=True)
    return dx_xD.astype(x_xD.dtype), dscale_xD.astype(scale_xD.dtype)


_scaled_norm.defvjp(_forward, _backward)
