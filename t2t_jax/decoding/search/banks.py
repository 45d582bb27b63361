"""Banks of hypotheses: those that have met as much of a constraint."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.types import Array

HIGHEST_BANK = 2**30
"""A bank above those of any constraint."""


def order(scores_BxN: Array, banks_BxN: Array) -> jax.Array:
    """Orders hypotheses by bank, the highest first, and by score inside a bank.

    Returns:
      [B, N] indices; hypotheses with the score -inf are last.

    Example:
      >>> order(jnp.array([[-1.0, -jnp.inf, -3.0, -2.0]]), jnp.array([[0, 9, 1, 1]]))
      Array([[3, 2, 0, 1]], dtype=int32)
    """
    scores_BxN = jnp.asarray(scores_BxN)
    numbers_BxN = jnp.broadcast_to(_numbers(scores_BxN.shape[1]), scores_BxN.shape)
    keys = jnp.isneginf(scores_BxN), -jnp.asarray(banks_BxN), -scores_BxN
    *_, indices_BxN = jax.lax.sort((*keys, numbers_BxN), num_keys=3)
    indices: jax.Array = indices_BxN
    return indices


def divide_among_banks(totals_BxN: Array, banks_BxN: Array, *, count: int) -> jax.Array:
    """Chooses continuations from each bank in turn.

    The order is: the best of every bank, the highest bank first; then the second best
    of every bank, and so on. A bank with fewer leaves the rest to the others.

    Source: dynamic beam allocation, Post and Vilar 2018 (arXiv 1804.06609), in the
    vectorised form of Hu et al. 2019 (N19-1090).

    Args:
      totals_BxN: [B, N] log-probabilities, -inf for what is not a continuation.
      banks_BxN: [B, N] int32.

    Returns:
      [B, count] indices into N.

    Example:
      >>> divide_among_banks(
      ...     jnp.array([[-1.0, -2.0, -3.0, -8.0, -9.0]]),
      ...     jnp.array([[0, 0, 0, 1, 1]]),
      ...     count=4,
      ... ).tolist()
      [[3, 0, 4, 1]]
    """
    totals_BxN, banks_BxN = jnp.asarray(totals_BxN), jnp.asarray(banks_BxN)
    size = totals_BxN.shape[1]
    numbers_BxN = jnp.broadcast_to(_numbers(size), totals_BxN.shape)
    # By bank, and the best of a bank first: the rank is the distance to its first.
    banks_BxN, losses_BxN, order_BxN = jax.lax.sort(
        (banks_BxN, -totals_BxN, numbers_BxN), num_keys=3
    )
    begins_BxN = banks_BxN != jnp.roll(banks_BxN, 1, axis=1)
    first_BxN = jax.lax.cummax(jnp.where(begins_BxN, numbers_BxN, 0), axis=1)
    is_none_BxN = jnp.isposinf(losses_BxN)
    rank_BxN = jnp.where(is_none_BxN, size, numbers_BxN - first_BxN)
    *_, chosen_BxN = jax.lax.sort((rank_BxN, -banks_BxN, order_BxN), num_keys=2)
    chosen: jax.Array = chosen_BxN[:, :count]
    return chosen


def _numbers(size: int) -> jax.Array:
    """Returns [1, N] int32 indices."""
    return jnp.arange(size, dtype=jnp.int32)[None]
