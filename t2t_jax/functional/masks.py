"""Attention masks: segments (padding and packing) and causality.

True = attends. A row of a batch may hold several sentences, separated by their segment
numbers from 1; 0 is padding.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from t2t_jax.types import PAD, Array


def segment_mask(query_segments_xQ: Array, key_segments_xK: Array) -> jax.Array:
    """Masks keys of other segments, and padding.

    Returns:
      mask: [..., Q, K] bool.

    Paper: §3.2.3 has one sentence a row, and does not mention padding.

    Example:
      >>> segment_mask(jnp.array([1, 2, 0]), jnp.array([1, 1, 2, 0])).astype(int)
      Array([[1, 1, 0, 0],
             [0, 0, 1, 0],
             [0, 0, 0, 0]], dtype=int32)
    """
    queries_xQx1 = jnp.asarray(query_segments_xQ)[..., :, None]
    keys_x1xK = jnp.asarray(key_segments_xK)[..., None, :]
    return (queries_xQx1 == keys_x1xK) & (keys_x1xK > PAD)


def causal_mask(length: int) -> jax.Array:
    """Masks later positions.

    Returns:
      mask: [length, length] bool, queries down, keys across.

    Paper: §3.2.3, third item: "prevent leftward information flow in the decoder".

    Example:
      >>> causal_mask(3).astype(int)
      Array([[1, 0, 0],
             [1, 1, 0],
             [1, 1, 1]], dtype=int32)
    """
    return jnp.tril(jnp.ones((length, length), bool))


def causal_segment_mask(segments_xL: Array) -> jax.Array:
    """Masks later positions, other segments, and padding.

    Returns:
      mask: [..., L, L] bool.

    Paper: §3.2.3: the decoder's self-attention.

    Example:
      >>> causal_segment_mask(jnp.array([1, 1, 2, 2])).astype(int)
      Array([[1, 0, 0, 0],
             [1, 1, 0, 0],
             [0, 0, 1, 0],
             [0, 0, 1, 1]], dtype=int32)
    """
    mask_xLxL = segment_mask(segments_xL, segments_xL)
    earlier_LxL = causal_mask(mask_xLxL.shape[-1])
    return mask_xLxL & jnp.broadcast_to(earlier_LxL, mask_xLxL.shape)


def segments_of(tokens_xL: Array) -> jax.Array:
    """Returns the segments of rows with one sentence each.

    Returns:
      segments: [..., L] int32, 1 for tokens, 0 for padding.

    Example:
      >>> segments_of(jnp.array([5, 7, 2, 0])).tolist()
      [1, 1, 1, 0]
    """
    return (jnp.asarray(tokens_xL) != PAD).astype(jnp.int32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Segments:
    """Which keys each query attends to: those of its own segment.

    Attributes:
      query: [B, Q] segment numbers from 1; 0 is padding.
      key: [B, K] segment numbers.
      is_causal: whether only to those up to its own position; then Q and K are the same
        positions.
    """

    query: Array
    key: Array
    is_causal: bool = dataclasses.field(default=False, metadata={"static": True})

    def mask(self) -> jax.Array:
        """Returns the mask for all heads, [B, 1, Q, K] bool."""
        if self.is_causal:
            return causal_segment_mask(self.query)[:, None]
        return segment_mask(self.query, self.key)[:, None]
