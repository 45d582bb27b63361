"""Attention within the segments of packed rows, by kernels that need no mask.

A mask of [B, Q, K] numbers, repeated for each head, is most of what such a kernel would
read. What it says is where each segment begins and how long it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax import jax_internals
from t2t_jax.functional.masks import PAD
from t2t_jax.types import Array

_MIN_TOKENS = 2
"""Tokens of the shortest segment: a subword and eos."""

Kernel = Callable[..., jax.Array]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("query", "key"),
    meta_fields=("is_causal",),
)
@dataclass(frozen=True)
class Segments:
    """Which keys each query attends to: those of its own segment.

    Attributes:
      query: [B, Q] segment numbers, from 1 without gaps, ascending and contiguous in a
        row; 0 is padding, at its end.
      key: [B, K] segment numbers; a query attends to the keys with its number.
      is_causal: whether only to those up to its own position; then Q and K are the same
        positions.
    """

    query: Array
    key: Array
    is_causal: bool


class Extents(NamedTuple):
    """Where the segments of rows are, as cuDNN's packed layout has it.

    Attributes:
      offsets: [B, M + 1] int32, the first slot of each segment; -1 behind the last.
      lengths: [B, M] int32, its slots; -1 behind the last.
    """

    offsets: jax.Array
    lengths: jax.Array


def segment_extents(segments_BxL: Array, max_segments: int) -> Extents:
    """Locates the segments of packed rows.

    Args:
      segments_BxL: [B, L] as in `Segments`.
      max_segments: M; segments with higher numbers are left out.

    Example:
      >>> offsets, lengths = segment_extents(jnp.array([[1, 1, 2, 2, 2, 0]]), 3)
      >>> offsets.tolist(), lengths.tolist()
      ([[0, 2, -1, -1]], [[2, 3, -1]])
    """
    segments_BxL = jnp.asarray(segments_BxL)
    numbers_M = jnp.arange(1, max_segments + 1)
    is_of_BxLxM = segments_BxL[:, :, None] == numbers_M[None, None, :]
    lengths_BxM = is_of_BxLxM.sum(axis=1, dtype=jnp.int32)
    ends_BxM = jnp.cumsum(lengths_BxM, axis=1, dtype=jnp.int32)
    exists_BxM = lengths_BxM > 0
    offsets_BxM = jnp.where(exists_BxM, ends_BxM - lengths_BxM, -1)
    return Extents(
        offsets=jnp.pad(offsets_BxM, ((0, 0), (0, 1)), constant_values=-1),
        lengths=jnp.where(exists_BxM, lengths_BxM, -1),
    )


def key_ranges(segments: Segments) -> tuple[jax.Array, jax.Array]:
    """Returns the first key of each query, and the one behind its last: [B, Q] each.

    The range of a query that attends to nothing is empty.

    Example:
      >>> segments_BxL = jnp.array([[1, 1, 2, 0]])
      >>> start, end = key_ranges(Segments(segments_BxL, segments_BxL, is_causal=True))
      >>> start.tolist(), end.tolist()
      ([[0, 0, 2, 0]], [[1, 2, 3, 0]])
    """
    query_BxQ, key_BxK = jnp.asarray(segments.query), jnp.asarray(segments.key)
    is_own_BxQxK = (query_BxQ[:, :, None] == key_BxK[:, None, :]) & (
        query_BxQ[:, :, None] > PAD
    )
    start_BxQ = jnp.argmax(is_own_BxQxK, axis=2).astype(jnp.int32)
    end_BxQ = start_BxQ + is_own_BxQxK.sum(axis=2, dtype=jnp.int32)
    if segments.is_causal:
        behind_Q = jnp.arange(1, query_BxQ.shape[1] + 1, dtype=jnp.int32)
        behind_BxQ = jnp.broadcast_to(behind_Q[None], end_BxQ.shape)
        end_BxQ = jnp.minimum(end_BxQ, behind_BxQ)
    return start_BxQ, jnp.maximum(start_BxQ, end_BxQ)


def packed_attention(
    q_BxHxQxD: jax.Array,
    k_BxHxKxD: jax.Array,
    v_BxHxKxD: jax.Array,
    *,
    segments: Segments,
    max_segments: int = 0,
    kernel: Kernel | None = None,
) -> jax.Array:
    """Computes attention within segments by cuDNN's kernel for packed rows.

    Args:
      max_segments: M, the most segments of a row; the kernel starts a block for each of
        them, in use or not. 0 for as many as fit into the row with two tokens each.
      kernel: as `dot_product_attention` of `jax_internals.cudnn_attention`, which is
        used for None, on GPUs from Hopper on.

    Returns:
      context: [B, H, Q, D] in the dtype of the values. Padding yields zeros. A row with
      more segments than M, or with one that has no keys or no queries, yields NaN.

    Paper: §3.2.1, equation 1.
    """
    shortest = min(q_BxHxQxD.shape[2], k_BxHxKxD.shape[2])
    # The kernel takes rows of two segments and more for packed.
    most = max(2, max_segments or shortest // _MIN_TOKENS)
    query, key = (
        segment_extents(side, most) for side in (segments.query, segments.key)
    )
    is_query_BxQ = jnp.asarray(segments.query) > PAD
    is_key_BxK = jnp.asarray(segments.key) > PAD
    types: Any = {name: name for name in ("PADDING", "PADDING_CAUSAL")}
    if kernel is None:
        cudnn = jax_internals.cudnn_attention()
        kernel, types = cudnn.dot_product_attention, cudnn.MaskType
    context_BxQxHxD = kernel(
        _rows_first(q_BxHxQxD, is_query_BxQ),
        _rows_first(k_BxHxKxD, is_key_BxK),
        _rows_first(v_BxHxKxD, is_key_BxK),
        q_seqlen=query.lengths,
        kv_seqlen=key.lengths,
        q_offsets=query.offsets,
        kv_offsets=key.offsets,
        scale=q_BxHxQxD.shape[-1] ** -0.5,
        mask_type=types["PADDING_CAUSAL" if segments.is_causal else "PADDING"],
    )
    last_B = jnp.maximum(*(jnp.max(x, axis=1) for x in (segments.query, segments.key)))
    has_both_B = jnp.all((query.lengths > 0) == (key.lengths > 0), axis=1)
    fits_B = (last_B <= most) & has_both_B
    context_BxQxHxD = jnp.where(fits_B[:, None, None, None], context_BxQxHxD, jnp.nan)
    # The kernel leaves unwritten what belongs to no segment.
    context_BxQxHxD = jnp.where(is_query_BxQ[:, :, None, None], context_BxQxHxD, 0)
    return jnp.swapaxes(context_BxQxHxD, 1, 2)


def ranged_attention(
    q_BxHxQxD: jax.Array,
    k_BxHxKxD: jax.Array,
    v_BxHxKxD: jax.Array,
    *,
    segments: Segments,
    implementation: str = "mosaic_gpu",
) -> jax.Array:
    """Computes attention within segments by tokamax, which takes ranges of keys.

    Args:
      implementation: of tokamax; "mosaic_gpu" is for GPUs, "xla" for any device.

    Returns:
      context: [B, H, Q, D] in the dtype of the values. Padding yields zeros.

    Raises:
      ImportError: tokamax is not installed, or has no ranges.

    Paper: §3.2.1, equation 1.
    """
    from tokamax._src.ops.attention import api, base

    start_BxQ, end_BxQ = key_ranges(segments)
    is_query_BxQ = jnp.asarray(segments.query) > PAD
    is_key_BxK = jnp.asarray(segments.key) > PAD
    mask = base.Mask(k_start=start_BxQ[:, None], k_end=end_BxQ[:, None])
    operation: Any = api.IMPLEMENTATIONS[implementation]
    with jax.numpy_rank_promotion("allow"):  # which tokamax relies on
        context_BxQxHxD = operation(
            _rows_first(q_BxHxQxD, is_query_BxQ),
            _rows_first(k_BxHxKxD, is_key_BxK),
            _rows_first(v_BxHxKxD, is_key_BxK),
            mask=mask,
        )
    context_BxQxHxD = jnp.where(is_query_BxQ[:, :, None, None], context_BxQxHxD, 0)
    context: jax.Array = jnp.swapaxes(context_BxQxHxD, 1, 2)
    return context


def _rows_first(x_BxHxLxD: jax.Array, is_real_BxL: jax.Array) -> jax.Array:
    """Returns [B, L, H, D] with zeros at padding, and in its gradient too.

    A kernel may leave the gradient of padding unwritten.
    """
    x_BxLxHxD = jnp.swapaxes(x_BxHxLxD, 1, 2)
    return jnp.where(is_real_BxL[:, :, None, None], x_BxLxHxD, 0)
