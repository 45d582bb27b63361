"""Feed-forward networks with a gate: `config.model.activation=swiglu` and `geglu`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax

from t2t_jax.functional.feed_forward import ACTIVATIONS, affine
from t2t_jax.types import Array

GATES: Mapping[str, str] = {"swiglu": "swish", "geglu": "gelu"}
"""The activations of the gates."""


def gated_feed_forward(
    x_xD: Array,
    *,
    w_DxF: Array,
    v_DxF: Array,
    w2_FxD: Array,
    activation: str,
    dropout: Callable[[jax.Array], jax.Array] | None = None,
) -> jax.Array:
    """Computes FFN(x) = (act(x W) * x V) W2 at each position.

    Args:
      activation: of `GATES`.
      dropout: applied to the gated product; None for no dropout.

    Returns:
      [..., D] in the dtype of the input. The weights are cast to it.

    Paper: Shazeer, 2020, "GLU Variants Improve Transformer", equation 6.

    Departs:
      From §3.3, equation 2: three matrices in place of two, and no biases. With two
      thirds of the width F it has as many parameters.

    Example:
      >>> import jax.numpy as jnp
      >>> eye, x = jnp.eye(2), jnp.array([3.0, -1.0])
      >>> y = gated_feed_forward(
      ...     x, w_DxF=eye, v_DxF=2 * eye, w2_FxD=eye, activation="swiglu"
      ... )
      >>> y.round(3).tolist()  # x sigmoid(x) 2 x
      [17.14..., 0.53...]
    """
    gate_xF = ACTIVATIONS[GATES[activation]](affine(x_xD, w_DxF))
    inner_xF = gate_xF * affine(x_xD, v_DxF)
    if dropout is not None:
        inner_xF = dropout(inner_xF)
    return affine(inner_xF, w2_FxD)
