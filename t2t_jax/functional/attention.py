"""Scaled dot-product attention, equation 1 of the paper, and additive attention."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array


def attention(
    q_xQxDk: Array,
    k_xKxDk: Array,
    v_xKxDv: Array,
    *,
    mask_xQxK: Array | None = None,
    dropout: Callable[[jax.Array], jax.Array] | None = None,
) -> jax.Array:
    r"""Computes Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V.

    Args:
      mask_xQxK: [..., Q, K] True = attends; axes of size 1 are broadcast. None: every
        query attends to all keys.
      dropout: applied to the weights; None for no dropout.

    Returns:
      context: [..., Q, Dv] in the dtype of the values. A fully masked query yields
      zeros.

    Raises:
      ValueError: the shapes do not agree.

    Paper: §3.2.1, equation 1. Figure 2, left: MatMul, Scale, Mask, SoftMax, MatMul.

    Departs: The paper has no dropout on attention weights.

    Example:
      >>> q, k = jnp.array([[1.0, 0.0]]), jnp.array([[1.0, 0.0], [0.0, 1.0]])
      >>> v = jnp.array([[1.0], [5.0]])
      >>> attention(q, k, v, mask_xQxK=jnp.array([[True, False]])).tolist()
      [[1.0]]
    """
    check_axes(k=(k_xKxDk, "...xKxDk"), v=(v_xKxDv, "...xKxDv"))
    weights_xQxK = attention_weights(q_xQxDk, k_xKxDk, mask_xQxK=mask_xQxK)
    if dropout is not None:
        weights_xQxK = dropout(weights_xQxK)
    leading = jnp.broadcast_shapes(weights_xQxK.shape[:-2], v_xKxDv.shape[:-2])
    return einsum_f32(
        "...qk,...kv->...qv",
        _broadcast(weights_xQxK.astype(v_xKxDv.dtype), leading),
        _broadcast(v_xKxDv, leading),
    )


def attention_weights(
    q_xQxDk: Array, k_xKxDk: Array, *, mask_xQxK: Array | None = None
) -> jax.Array:
    """Computes the attention weights, the first half of equation 1.

    Args:
      mask_xQxK: [..., Q, K] True = attends; axes of size 1 are broadcast. None: every
        query attends to all keys.

    Returns:
      weights: [..., Q, K] float32. Each row sums to 1, or is zeros if fully masked.

    Raises:
      ValueError: the shapes do not agree.

    Paper: §3.2.1: softmax(Q K^T / sqrt(d_k)).

    Example:
      >>> q, k = jnp.zeros((1, 2)), jnp.ones((4, 2))
      >>> attention_weights(q, k).tolist()
      [[0.25, 0.25, 0.25, 0.25]]
    """
    sizes = check_axes(q=(q_xQxDk, "...xQxDk"), k=(k_xKxDk, "...xKxDk"))
    leading = jnp.broadcast_shapes(q_xQxDk.shape[:-2], k_xKxDk.shape[:-2])
    # Float32, since sums of exponentials lose small weights in bfloat16's 8 bits.
    scores_xQxK = einsum_f32(
        "...qd,...kd->...qk",
        _broadcast(q_xQxDk, leading),
        _broadcast(k_xKxDk, leading),
        dtype=jnp.float32,
    ) / math.sqrt(sizes["Dk"])
    return _masked_softmax(scores_xQxK, mask_xQxK)


def additive_attention_weights(
    q_xQxDk: Array, k_xKxDk: Array, *, score_Dk: Array, mask_xQxK: Array | None = None
) -> jax.Array:
    """Computes attention weights softmax(v^T tanh(W q + U k)).

    W q does not depend on the key, nor U k on the query, so both are arguments: the
    keys are projected once per sentence, however many queries there are.

    Args:
      q_xQxDk: [..., Q, Dk] queries, already multiplied by W.
      k_xKxDk: [..., K, Dk] keys, already multiplied by U.
      score_Dk: [Dk] the vector v.
      mask_xQxK: as of `attention_weights`.

    Returns:
      weights: [..., Q, K] float32, as `attention_weights` returns them.

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
    hidden_xQxKxDk = jnp.tanh(queries_xQx1xDk + keys_x1xKxDk)
    scores_xQxK = einsum_f32("...d,d->...", hidden_xQxKxDk, score_Dk, dtype=jnp.float32)
    return _masked_softmax(scores_xQxK, mask_xQxK)


def _masked_softmax(scores_xQxK: jax.Array, mask_xQxK: Array | None) -> jax.Array:
    """Computes the softmax over the keys that a mask leaves: of no key, zeros."""
    if mask_xQxK is None:
        return jax.nn.softmax(scores_xQxK)
    # Not -inf: the softmax of a fully masked row would be NaN, and so its gradient,
    # used or not. The second `where` turns such a row into zeros.
    lowest = np.finfo(np.float32).min
    weights_xQxK = jax.nn.softmax(jnp.where(mask_xQxK, scores_xQxK, lowest))
    return jnp.where(mask_xQxK, weights_xQxK, 0.0)


def _broadcast(x: Array, leading: tuple[int, ...]) -> jax.Array:
    return jnp.broadcast_to(x, (*leading, *x.shape[-2:]))
