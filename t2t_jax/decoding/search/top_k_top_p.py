"""Exact top-k without sorting, and the top-k and top-p filters of sampling."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from t2t_jax.types import Array

# Bisections of the interval of the threshold: float32 has no finer resolution.
_HALVINGS = 30


def top_k_filter(logits_xV: Array, k: int) -> jax.Array:
    """Masks all but the k most probable tokens, and those as probable as the k-th.

    Args:
      logits_xV: [..., V] logits, -inf for masked tokens.
      k: at least 1; V and more mask nothing.

    Example:
      >>> top_k_filter(jnp.array([[1.0, 3.0, 2.0]]), 2).tolist()
      [[-inf, 3.0, 2.0]]
    """
    logits_xV = jnp.asarray(logits_xV)
    best_xK, _ = top_k(logits_xV, min(k, logits_xV.shape[-1]))
    return jnp.where(logits_xV >= best_xK[..., -1:], logits_xV, -jnp.inf)


def top_p_filter(logits_xV: Array, p: float) -> jax.Array:
    """Masks all but the fewest most probable tokens whose probabilities add up to p.

    Does not sort: the smallest probability that is kept is found by bisection, to
    within 1e-9 of the largest. Tokens closer to it are kept or masked together.

    Source: Holtzman et al., arXiv 1904.09751, "nucleus sampling".

    Args:
      logits_xV: [..., V] logits, -inf for masked tokens.
      p: in (0, 1]; the most probable token is always kept.

    Example:
      >>> logits = jnp.log(jnp.array([[0.1, 0.5, 0.4]]))
      >>> top_p_filter(logits, 0.6).argmin().item()
      0
      >>> jnp.isfinite(top_p_filter(logits, 0.5)).tolist()
      [[False, True, False]]
    """
    logits_xV = jnp.asarray(logits_xV, jnp.float32)
    highest_x1 = jnp.max(logits_xV, axis=-1, keepdims=True)
    relative_xV = jnp.exp(logits_xV - highest_x1)  # 1 is the most probable
    needed_x1 = p * jnp.sum(relative_xV, axis=-1, keepdims=True)

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        enough_x1, too_high_x1 = bounds
        middle_x1 = (enough_x1 + too_high_x1) / 2
        kept_xV = jnp.where(relative_xV >= middle_x1, relative_xV, 0.0)
        holds_x1 = jnp.sum(kept_xV, axis=-1, keepdims=True) >= needed_x1
        return (
            jnp.where(holds_x1, middle_x1, enough_x1),
            jnp.where(holds_x1, too_high_x1, middle_x1),
        )

    start = jnp.zeros_like(highest_x1), jnp.full_like(highest_x1, 1.0)
    enough_x1, _ = jax.lax.fori_loop(0, _HALVINGS, halve, start)
    # Bisection never reaches 1: the most probable token by itself may suffice.
    kept_xV = (relative_xV >= enough_x1) | (relative_xV == 1.0)
    return jnp.where(kept_xV, logits_xV, -jnp.inf)


def top_k(
    values_xV: Array, k: int, *, block: int | None = None
) -> tuple[jax.Array, jax.Array]:
    """Returns the `k` largest entries of the last axis and their indices.

    Equal to `jax.lax.top_k`, ties included (the lower index first), for rows
    without NaN. An entry among the k largest lies in one of the k blocks with the
    largest maxima, so only these blocks are searched: one cheap pass of maxima, then
    `k * block` entries instead of V. On two CPU cores, 64 rows of 37,000 take 0.5 ms
    where `jax.lax.top_k` takes 2.6 and `argmax` 10.

    Args:
      k: static, at most V.
      block: entries per block; static. None balances the two searches.

    Returns:
      ([..., k] values in descending order, [..., k] int32 indices).

    Example:
      >>> values, indices = top_k(jnp.array([[3.0, 9.0, 4.0, 8.0, 1.0]]), 2, block=2)
      >>> values.tolist(), indices.tolist()
      ([[9.0, 8.0]], [[1, 3]])
    """
    values_xV = jnp.asarray(values_xV)
    *leading, size = values_xV.shape
    block = block or _block_size(size, k)
    if size <= k * block:
        best_xK, indices_xK = jax.lax.top_k(values_xV, k)
        return best_xK, indices_xK
    _, blocks_xK = jax.lax.top_k(_block_maxima(values_xV, block), k)
    # In ascending order, so that ties keep the lower index first.
    blocks_xKx1 = jnp.sort(blocks_xK, axis=-1)[..., None]
    offsets = jnp.arange(block, dtype=blocks_xK.dtype)
    indices_xKxN = blocks_xKx1 * block + jnp.expand_dims(
        offsets, tuple(range(blocks_xKx1.ndim - 1))
    )
    indices_xI = indices_xKxN.reshape(*leading, k * block)
    # A ragged last block reaches past the end: fill with -inf.
    inside_xI = jnp.take_along_axis(
        values_xV, indices_xI, axis=-1, mode="fill", fill_value=-jnp.inf
    )
    best_xK, positions_xK = jax.lax.top_k(inside_xI, k)
    return best_xK, jnp.take_along_axis(indices_xI, positions_xK, axis=-1)


def _block_size(size: int, k: int) -> int:
    """Chooses about sqrt(V / k), a divisor if possible: a ragged end costs a copy."""
    balanced = max(2, math.isqrt(size // k))
    near = range(balanced // 2 + 1, 2 * balanced)
    divisors = [block for block in near if size % block == 0]
    return min(divisors or [balanced], key=lambda block: abs(block - balanced))


def _block_maxima(values_xV: jax.Array, block: int) -> jax.Array:
    """Returns the maximum of each block; the last block may be shorter."""
    *leading, size = values_xV.shape
    full, rest = divmod(size, block)
    # Cutting off the rest is free inside the reduction; padding would copy the row.
    even_xV = values_xV[..., : full * block]
    maxima_xG = even_xV.reshape(*leading, full, block).max(-1)
    if not rest:
        return maxima_xG
    last_xG = values_xV[..., full * block :].max(-1, keepdims=True)
    return jnp.concatenate([maxima_xG, last_xG], axis=-1)
