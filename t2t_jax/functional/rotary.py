"""Rotary positions: `config.model.positions=rotary`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.functional.positions import position_angles
from t2t_jax.types import Array


def rotate(x_BxHxLxD: Array, positions_BxL: Array) -> jax.Array:
    """Rotates the pairs of components of queries or keys by their positions.

    The pair (x_2i, x_2i+1) of a vector at position m is turned by the angle
    m / 10000^(2i / D), so that the product of a query and a key depends on the
    difference of their positions.

    Args:
      x_BxHxLxD: [B, H, L, D], D even.
      positions_BxL: [B, L] integers: positions inside the sentence, from 0; or [1, 1],
        one of all vectors.

    Returns:
      [B, H, L, D] in the dtype of the input; angles and products are float32.

    Raises:
      ValueError: D is odd.

    Paper: Su et al., 2021, "RoFormer: Enhanced Transformer with Rotary Position
      Embedding", equation 34.

    Departs: From §3.5, where positions are added to the embeddings.

    Example:
      >>> rotate(jnp.array([[[[1.0, 0.0]]]]), jnp.array([[2]])).round(3).tolist()
      [[[[-0.416..., 0.90...]]]]
    """
    depth = x_BxHxLxD.shape[-1]
    if depth % 2:
        raise ValueError(
            f"d_k={depth} must be even: rotary positions turn pairs of components. "
            "Change config.model.d_k."
        )
    # Angles near 1,000 have no fraction in bfloat16.
    x32_BxHxLxD = jnp.asarray(x_BxHxLxD, jnp.float32)
    angles_BxLxI = position_angles(positions_BxL, depth)
    angles_Bx1xLxD = jnp.repeat(angles_BxLxI, 2, axis=-1)[:, None]
    # (-x_1, x_0, -x_3, x_2, ...), rolled: an axis of two fills 2 of a TPU's 128 lanes.
    is_first_D = jnp.arange(depth)[None, None, None] % 2 == 0
    turned_BxHxLxD = jnp.where(
        is_first_D, -jnp.roll(x32_BxHxLxD, -1, -1), jnp.roll(x32_BxHxLxD, 1, -1)
    )
    cos_Bx1xLxD, sin_Bx1xLxD = jnp.cos(angles_Bx1xLxD), jnp.sin(angles_Bx1xLxD)
    rotated_BxHxLxD = x32_BxHxLxD * cos_Bx1xLxD + turned_BxHxLxD * sin_Bx1xLxD
    return rotated_BxHxLxD.astype(x_BxHxLxD.dtype)
