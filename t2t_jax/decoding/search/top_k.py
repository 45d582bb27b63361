"""The k largest of a long row, exactly, without sorting the row."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from t2t_jax.types import Array

# Halvings of the interval in which a threshold lies: float32 tells no more apart.
_HALVINGS = 30


def top_k_filter(logits_xV: Array, k: int) -> jax.Array:
    """Leaves the k most probable tokens; those as probable as the k-th stay too.

    Args:
      logits_xV: [..., V] logits, -inf for what is out already.
      k: how many, at least 1; V and more leave all.

    Returns:
      [..., V]: -inf for all others.

    Example:
      >>> top_k_filter(jnp.array([[1.0, 3.0, 2.0]]), 2).tolist()
      [[-inf, 3.0, 2.0]]
    """
    logits_xV = jnp.asarray(logits_xV)
    best_xK, _ = top_k(logits_xV, min(k, logits_xV.shape[-1]))
    return jnp.where(logits_xV >= best_xK[..., -1:], logits_xV, -jnp.inf)


def top_p_filter(logits_xV: Array, p: float) -> jax.Array:
    """Leaves the fewest most probable tokens that are together at least p probable.

    Found without sorting: the least probability that stays is closed in by halves, to
    within 1e-9 of the largest. Tokens that lie closer to it stay or go together.

    Source: Holtzman et al., arXiv 1904.09751, "nucleus sampling".

    Args:
      logits_xV: [..., V] logits, -inf for what is out already.
      p: in (0, 1]; the most probable token always stays.

    Returns:
      [..., V]: -inf for all others.

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
    # Halving comes close to 1 and never there: the most probable one alone may do.
    kept_xV = (relative_xV >= enough_x1) | (relative_xV == 1.0)
    return jnp.where(kept_xV, logits_xV, -jnp.inf)


def top_k(
    values_xV: Array, k: int, *, block: int | None = None
) -> tuple[jax.Array, jax.Array]:
    """Finds the `k` largest entries of the last axis and where they are.

    Equal to `jax.lax.top_k`, ties included (the lower index first), for rows
    without NaN. An entry among the k largest lies in one of the k blocks with the
    largest maxima, so only these blocks are searched: one cheap pass of maxima, then
    `k * block` entries instead of V. On two CPU cores, 64 rows of 37,000 take 0.5 ms
    where `jax.lax.top_k` takes 2.6 and `argmax` 10.

    Args:
      values_xV: [..., V] numbers of any float type.
      k: how many; static, at most V.
      block: entries per block; static. None: as many as make both searches alike
        long.

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
        return _plain_top_k(values_xV, k)
    _, blocks_xK = _plain_top_k(_block_maxima(values_xV, block), k)
    # In ascending order, so that among equals the lower index stays the first.
    blocks_xKx1 = jnp.sort(blocks_xK, axis=-1)[..., None]
    offsets = jnp.arange(block, dtype=blocks_xK.dtype)
    indices_xKxN = blocks_xKx1 * block + jnp.expand_dims(
        offsets, tuple(range(blocks_xKx1.ndim - 1))
    )
    indices_xI = indices_xKxN.reshape(*leading, k * block)
    # A ragged last block reaches past the end, where there is nothing to find.
    inside_xI = jnp.take_along_axis(
        values_xV, indices_xI, axis=-1, mode="fill", fill_value=-jnp.inf
    )
    best_xK, places_xK = _plain_top_k(inside_xI, k)
    return best_xK, jnp.take_along_axis(indices_xI, places_xK, axis=-1)


def _block_size(size: int, k: int) -> int:
    """Chooses about sqrt(V / k), if it can a divisor: a ragged end costs a copy."""
    balanced = max(2, math.isqrt(size // k))
    near = range(balanced // 2 + 1, 2 * balanced)
    divisors = [block for block in near if size % block == 0]
    return min(divisors or [balanced], key=lambda block: abs(block - balanced))


def _plain_top_k(values: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    best, indices = jax.lax.top_k(values, k)
    return best, indices


def _block_maxima(values_xV: jax.Array, block: int) -> jax.Array:
    """Takes the maximum of each block; the last block may be shorter."""
    *leading, size = values_xV.shape
    whole, rest = divmod(size, block)
    # Cutting off the rest is free inside the reduction; padding would copy the row.
    even_xV = values_xV[..., : whole * block]
    maxima_xG = even_xV.reshape(*leading, whole, block).max(-1)
    if not rest:
        return maxima_xG
    last_xG = values_xV[..., whole * block :].max(-1, keepdims=True)
    return jnp.concatenate([maxima_xG, last_xG], axis=-1)
