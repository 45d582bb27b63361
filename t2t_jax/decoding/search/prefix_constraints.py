"""Forced prefixes: the first tokens of outputs, as the caller gives them."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.types import Array


def forced_tokens(prefixes_BxP: Array, position: Array, *, pad: int) -> jax.Array:
    """Returns the forced token of each sentence at a position, [B] int32; pad for none.

    Args:
      prefixes_BxP: [B, P] int tokens, pad after the end of each prefix; P at least 1.

    Example:
      >>> prefixes = jnp.array([[5, 6], [7, 0], [0, 0]])
      >>> forced_tokens(prefixes, 1, pad=0).tolist()
      [6, 0, 0]
      >>> forced_tokens(prefixes, 2, pad=0).tolist()
      [0, 0, 0]
    """
    prefixes_BxP = jnp.asarray(prefixes_BxP, jnp.int32)
    length = prefixes_BxP.shape[1]
    here_B = jnp.take(prefixes_BxP, jnp.minimum(position, length - 1), axis=1)
    return jnp.where(jnp.asarray(position) < length, here_B, pad)


def mask_to_forced_token(
    logits_BxWxV: Array, forced_B: Array, *, pad: int
) -> jax.Array:
    """Masks all logits of a sentence but that of its forced token.

    Args:
      forced_B: [B] from `forced_tokens`; pad: nothing is masked.

    Example:
      >>> mask_to_forced_token(jnp.zeros((2, 1, 3)), jnp.array([2, 0]), pad=0).tolist()
      [[[-inf, -inf, 0.0]], [[0.0, 0.0, 0.0]]]
    """
    logits_BxWxV = jnp.asarray(logits_BxWxV)
    forced_Bx1x1 = jnp.asarray(forced_B)[:, None, None]
    tokens_1x1xV = jnp.arange(logits_BxWxV.shape[-1], dtype=jnp.int32)[None, None]
    allowed_Bx1xV = (forced_Bx1x1 == pad) | (forced_Bx1x1 == tokens_1x1xV)
    return jnp.where(allowed_Bx1xV, logits_BxWxV, -jnp.inf)


def raise_limits_for_prefix(
    limits_B: Array, prefixes_BxP: Array | None, *, max_length: int, pad: int
) -> jax.Array:
    """Raises limits that would end an output within its prefix.

    Args:
      limits_B: [B] int32 maximum tokens of each output, 0 for an empty row.

    Returns:
      [B] int32: at least one token more than the prefix, 0 for an empty row.

    Example:
      >>> raise_limits_for_prefix(
      ...     jnp.array([1, 9]), jnp.array([[5, 6], [7, 0]]), max_length=20, pad=0
      ... ).tolist()
      [3, 9]
    """
    limits_B = jnp.asarray(limits_B, jnp.int32)
    if prefixes_BxP is None:
        return limits_B
    lengths_B = jnp.sum(jnp.asarray(prefixes_BxP) != pad, axis=1, dtype=jnp.int32)
    raised_B = jnp.minimum(jnp.maximum(limits_B, lengths_B + 1), max_length)
    return jnp.where(limits_B > 0, raised_B, 0)
