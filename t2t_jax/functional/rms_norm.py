"""Root mean square layer normalization: `config.model.norm=rms`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.functional.layer_norm import scaled_norm
from t2t_jax.types import Array


def rms_norm(x_xD: Array, scale_D: Array, *, epsilon: float = 1e-6) -> jax.Array:
    """Divides each vector by its root mean square, then applies the scale.

    Unless the input is float32, the gradient is custom: reverse mode only.

    Args:
      epsilon: added to the mean square, so that a vector of zeros stays one.

    Returns:
      [..., D] in the dtype of the input. The statistic is float32.

    Paper: Zhang and Sennrich, 2019, "Root Mean Square Layer Normalization", equation 4.

    Departs:
      From §3.1: no mean is subtracted, and there is no bias. From its own paper, which
      has no epsilon in the equation.

    Example:
      >>> rms_norm(jnp.array([3.0, -4.0]), jnp.array([1.0, 2.0])).round(3).tolist()
      [0.849..., -2.263...]
    """
    x_xD = jnp.asarray(x_xD)
    scale_xD = jnp.expand_dims(scale_D, tuple(range(x_xD.ndim - 1)))
    return scaled_norm(x_xD, scale_xD, epsilon, centered=False).astype(x_xD.dtype)
