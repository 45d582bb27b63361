"""Scaled dot-product attention: equation 1 of the paper."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array

MAX_FUSED_DEPTH = 128
"""Head depth that all kernels support on every GPU; on Hopper it is 256."""


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
    if mask_xQxK is None:
        return jax.nn.softmax(scores_xQxK)
    # Not -inf: the softmax of a fully masked row would be NaN, and so its gradient,
    # used or not. The second `where` turns such a row into zeros.
    lowest = np.finfo(np.float32).min
    weights_xQxK = jax.nn.softmax(jnp.where(mask_xQxK, scores_xQxK, lowest))
    return jnp.where(mask_xQxK, weights_xQxK, 0.0)


def _broadcast(x: Array, leading: tuple[int, ...]) -> jax.Array:
    return jnp.broadcast_to(x, (*leading, *x.shape[-2:]))


def fused_attention(
    q_BxHxQxD: jax.Array,
    k_BxHxKxD: jax.Array,
    v_BxHxKxD: jax.Array,
    *,
    mask_Bx1xQxK: jax.Array,
    implementation: Literal["cudnn", "xla"] = "cudnn",
) -> jax.Array:
    """Computes `attention` in one kernel, without storing the weights.

    The mask is repeated for each head, in the dtype of the queries.

    Args:
      implementation: of `jax.nn.dot_product_attention`. "cudnn" runs on NVIDIA GPUs
        only, for inputs that `can_be_fused` accepts; "xla" everywhere.

    Returns:
      context: [B, H, Q, D] in the dtype of the values. A fully masked query yields
      zeros.

    Paper: §3.2.1, equation 1.
    """
    swap_heads_and_length = functools.partial(jnp.swapaxes, axis1=1, axis2=2)
    # Under vmap, JAX has no rule for cuDNN's kernel with one mask for all heads.
    heads = q_BxHxQxD.shape[1]
    mask_BxHxQxK = jnp.repeat(mask_Bx1xQxK, heads, axis=1)
    context_BxQxHxD = jax.nn.dot_product_attention(
        swap_heads_and_length(q_BxHxQxD),
        swap_heads_and_length(k_BxHxKxD),
        swap_heads_and_length(v_BxHxKxD),
        mask=mask_BxHxQxK,
        implementation=implementation,
    )
    # The kernel masks with very low scores: a fully masked row would be uniform.
    attends_Bx1xQx1 = mask_Bx1xQxK.any(axis=-1, keepdims=True)
    return jnp.where(attends_Bx1xQx1, swap_heads_and_length(context_BxQxHxD), 0)


def can_be_fused(
    q_BxHxQxDk: jax.Array, v_BxHxKxDv: jax.Array, mask_Bx1xQxK: jax.Array
) -> bool:
    """Returns whether cuDNN has a kernel for these shapes and this dtype.

    Args:
      mask_Bx1xQxK: [B, 1, Q, K] True = attends; the Q axis may be 1, which cuDNN
        does not support.

    Example:
      >>> x, mask = jnp.zeros((1, 2, 4, 64), jnp.bfloat16), jnp.ones((1, 1, 4, 4), bool)
      >>> can_be_fused(x, x, mask), can_be_fused(x, x, mask[:, :, :1])
      (True, False)
    """
    (queries, d_k), (keys, d_v) = q_BxHxQxDk.shape[-2:], v_BxHxKxDv.shape[-2:]
    return (
        q_BxHxQxDk.dtype == v_BxHxKxDv.dtype == jnp.bfloat16
        and d_k == d_v <= MAX_FUSED_DEPTH
        and d_k % 8 == 0
        and queries % 2 == keys % 2 == 0
        and mask_Bx1xQxK.shape[-2] == queries
    )
