"""Learning rates: of §5.3 of the paper, and a linear warm-up to a constant."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.types import Array


def inverse_square_root(
    step: Array | int, d_model: int, *, warmup_steps: int, peak: float | None = None
) -> jax.Array:
    r"""Computes lrate = d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    Args:
      step: optimizer step, counted from 1.
      warmup_steps: optimizer steps until the peak; at least 1.
      peak: the learning rate at `warmup_steps`, its maximum. None: that of
        equation 3, (d_model * warmup_steps)^-0.5.

    Returns:
      The learning rate, float32, shaped like `step`.

    Paper: §5.3, equation 3; warmup_steps = 4000.

    Departs: Equation 3 ties the peak to d_model; small corpora need another.

    Example:
      >>> f"{inverse_square_root(4000, 512, warmup_steps=4000):.3e}"  # base's peak
      '6.988e-04'
      >>> steps = jnp.array([5, 10, 40])
      >>> inverse_square_root(steps, 512, warmup_steps=10, peak=2.0).tolist()
      [1.0, 2.0, 1.0]
    """
    if peak is None:
        peak = (d_model * warmup_steps) ** -0.5
    progress = jnp.asarray(step, jnp.float32) / warmup_steps
    return peak * jnp.minimum(jax.lax.rsqrt(progress), progress)


def linear_warmup(step: Array | int, *, warmup_steps: int, peak: float) -> jax.Array:
    """Computes lrate = peak * min(1, step / warmup_steps).

    Args:
      step: optimizer step, counted from 1.
      warmup_steps: optimizer steps until the peak; at least 1.

    Returns:
      The learning rate, float32, shaped like `step`.

    Departs: Equation 3 lets the learning rate decay as 1 / sqrt(step).

    Example:
      >>> linear_warmup(jnp.array([5, 10, 40]), warmup_steps=10, peak=2.0).tolist()
      [1.0, 2.0, 2.0]
    """
    progress = jnp.asarray(step, jnp.float32) / warmup_steps
    return peak * jnp.minimum(progress, 1.0)
