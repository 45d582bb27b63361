"""The exponential moving average of the parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.types import Params


def moving_average(
    average: Params, params: Params, *, decay: float, count: jax.Array | int
) -> Params:
    """Moves an exponential moving average towards new parameters.

    The decay of the first updates is lower, so that the average forgets the initial
    parameters: min(decay, (1 + count) / (10 + count)).

    Args:
      count: the number of the update, from 0.

    Departs: the paper averages the last checkpoints only (§6.1).

    Example:
      >>> zero, one = {"b": jnp.zeros(1)}, {"b": jnp.ones(1)}
      >>> moving_average(zero, one, decay=0.5, count=0)["b"]
      Array([0.9], dtype=float32)
    """
    t = jnp.asarray(count, jnp.float32)
    share = 1 - jnp.minimum(decay, (1 + t) / (10 + t))
    # Of parameters that do not change, the average does not change by a bit either:
    # -0.0 - share * 0.0 is -0.0.
    return jax.tree.map(lambda a, p: a - share * (a - p), average, params)
