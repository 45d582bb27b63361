"""Which tokens are probable enough to be drawn."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.decoding.top_k import top_k
from t2t_jax.types import Array

# Halvings of the interval in which a threshold lies: float32 tells no more apart.
_HALVINGS = 30


def most_probable(logits_xV: Array, k: int) -> jax.Array:
    """Leaves the k most probable tokens; those as probable as the k-th stay too.

    Args:
      logits_xV: [..., V] logits, -inf for what is out already.
      k: how many, at least 1; V and more leave all.

    Returns:
      [..., V]: -inf for all others.

    Example:
      >>> most_probable(jnp.array([[1.0, 3.0, 2.0]]), 2).tolist()
      [[-inf, 3.0, 2.0]]
    """
    logits_xV = jnp.asarray(logits_xV)
    best_xK, _ = top_k(logits_xV, min(k, logits_xV.shape[-1]))
    return jnp.where(logits_xV >= best_xK[..., -1:], logits_xV, -jnp.inf)


def nucleus(logits_xV: Array, p: float) -> jax.Array:
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
      >>> nucleus(logits, 0.6).argmin().item()
      0
      >>> jnp.isfinite(nucleus(logits, 0.5)).tolist()
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
