"""Attention in one kernel of an accelerator, which does not store the weights.

Of a fully masked query, which is padding, these return some finite context, and not
zeros as `attention` does; no loss depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from t2t_jax import jax_internals
from t2t_jax.functional.masks import Segments
from t2t_jax.types import PAD

MAX_DEPTH = 128
"""Head depth that cuDNN supports on every GPU, and the width of a TPU's registers."""

LENGTH_MULTIPLE = 128
"""Of queries and keys. TPUs' kernel takes no others; with 64, 192 and 320 the gradients
of cuDNN's (9.19) are NaN where all scores of a query are below about -90, as it counts
scores of 0 behind the last key.
"""

_MAX_BLOCK = 512
"""Most queries and keys that a TPU's kernel holds at once."""


def cudnn_attention(
    q_BxHxQxD: jax.Array,
    k_BxHxKxD: jax.Array,
    v_BxHxKxD: jax.Array,
    segments: Segments,
    *,
    kernel: Callable[..., jax.Array] = jax_internals.cudnn_attention,
) -> jax.Array:
    """Computes attention within segments by cuDNN, on NVIDIA's GPUs.

    Args:
      kernel: (q, k, v, bias, scale=…) -> context, with axes [B, L, H, D].

    Returns:
      context: [B, H, Q, D] in the dtype of the values.

    Paper: §3.2.1, equation 1.
    """
    # cuDNN subtracts scores: the difference of two must be finite. Padding attends to
    # all, so that no query is fully masked.
    is_padding_Bx1xQx1 = (jnp.asarray(segments.query) == PAD)[:, None, :, None]
    attends_Bx1xQxK = segments.mask() | is_padding_Bx1xQx1
    bias_Bx1xQxK = jnp.where(attends_Bx1xQxK, 0.0, -(2.0**40)).astype(q_BxHxQxD.dtype)
    # Projections lie in memory as [B, L, H, D], so nothing is copied.
    heads_last = (x.swapaxes(1, 2) for x in (q_BxHxQxD, k_BxHxKxD, v_BxHxKxD))
    scale = q_BxHxQxD.shape[-1] ** -0.5
    return kernel(*heads_last, bias_Bx1xQxK, scale=scale).swapaxes(1, 2)


def splash_attention(
    q_BxHxQxD: jax.Array,
    k_BxHxKxD: jax.Array,
    v_BxHxKxD: jax.Array,
    segments: Segments,
    *,
    interpret: bool = False,
) -> jax.Array:
    """Computes attention within segments by JAX's splash attention, on TPUs.

    Args:
      interpret: runs the kernel on any device, slowly.

    Returns:
      context: [B, H, Q, D] in the dtype of the values.

    Paper: §3.2.1, equation 1.
    """
    from jax.experimental.pallas.ops.tpu.splash_attention import (
        splash_attention_kernel as splash,
    )
    from jax.experimental.pallas.ops.tpu.splash_attention import (
        splash_attention_mask as masks,
    )

    shape = (q_BxHxQxD.shape[2], k_BxHxKxD.shape[2])
    q, k = (math.gcd(length, _MAX_BLOCK) for length in shape)
    mask = masks.CausalMask(shape) if segments.is_causal else masks.FullMask(shape)
    kernel = splash.make_splash_mha(
        masks.MultiHeadMask([mask] * q_BxHxQxD.shape[1]),
        head_shards=1,
        q_seq_shards=1,
        block_sizes=splash.BlockSizes(
            block_q=q,
            block_kv=k,
            block_kv_compute=k,
            block_q_dkv=q,
            block_kv_dkv=k,
            block_kv_dkv_compute=k,
            use_fused_bwd_kernel=True,
        ),
        interpret=interpret,
    )
    ids = (jnp.asarray(segments.query), jnp.asarray(segments.key))
    scaled_BxHxQxD = q_BxHxQxD * q_BxHxQxD.shape[-1] ** -0.5
    with jax.numpy_rank_promotion("allow"):  # which the kernel relies on
        context: jax.Array = jax.vmap(kernel)(
            scaled_BxHxQxD, k_BxHxKxD, v_BxHxKxD, splash.SegmentIds(*ids)
        )
    return context


FUSED: dict[str, Callable[..., jax.Array]] = {
    "cudnn": cudnn_attention,
    "splash": splash_attention,
}
"""By the values of `model.attention`."""


def fits(q_BxHxQxDk: jax.Array, v_BxHxKxDv: jax.Array) -> bool:
    """Returns whether the kernels take these shapes and this dtype."""
    (queries, d_k), (keys, d_v) = q_BxHxQxDk.shape[-2:], v_BxHxKxDv.shape[-2:]
    return (
        q_BxHxQxDk.dtype == v_BxHxKxDv.dtype == jnp.bfloat16
        and d_k == d_v <= MAX_DEPTH
        and d_k % 8 == 0
        and queries % LENGTH_MULTIPLE == keys % LENGTH_MULTIPLE == 0
    )
