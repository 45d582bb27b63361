"""Additive attention, as in recurrent translation before the Transformer."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.functional.attention import masked_softmax
from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array


def additive_attention_weights(
    q_xQxDk: Array,
    k_xKxDk: Array,
    *,
    score_Dk: Array,
    mask_xQxK: Array | None = None,
) -> jax.Array:
    """Computes attention weights softmax(v^T tanh(W q + U k)).

    W q does not depend on the key, nor U k on the query, so both are arguments: the
    keys are projected once per sentence, however many queries there are.

    Args:
      q_xQxDk: [..., Q, Dk] queries, already multiplied by W.
      k_xKxDk: [..., K, Dk] keys, already multiplied by U.
      score_Dk: [Dk] the vector v.
      mask_xQxK: [..., Q, K] True = attends; axes of size 1 are broadcast. None: every
        query attends to all keys.

    Returns:
      weights: [..., Q, K] float32. Each row sums to 1, or is zeros if fully masked.

    Raises:
      ValueError: the shapes do not agree.

    Paper:
      §3.2.1 compares it with the dot product: "additive attention computes the
      compatibility function using a feed-forward network with a single hidden layer".

    Example:
      >>> q, k = jnp.zeros((1, 2)), jnp.array([[9.0, 9.0], [-9.0, -9.0]])
      >>> additive_attention_weights(q, k, score_Dk=jnp.array([9.0, 9.0])).round(2)
      Array([[1., 0.]], dtype=float32)
    """
    check_axes(q=(q_xQxDk, "...xQxDk"), k=(k_xKxDk, "...xKxDk"), score=(score_Dk, "Dk"))
    queries_xQx1xDk = jnp.asarray(q_xQxDk)[..., :, None, :]
    keys_x1xKxDk = jnp.asarray(k_xKxDk)[..., None, :, :]
    # Float32, since sums of exponentials lose small weights in bfloat16's 8 bits.
    scores_xQxK = einsum_f32(
        "...d,d->...",
        jnp.tanh(queries_xQx1xDk + keys_x1xKxDk),
        score_Dk,
        dtype=jnp.float32,
    )
    return masked_softmax(scores_xQxK, mask_xQxK)
