"""Adam with the learning rate of equation 3."""

from __future__ import annotations

import jax
import optax

from t2t_jax.functional.schedule import inverse_square_root
from t2t_jax.training.config import OptimizerConfig


def learning_rate(
    count: jax.Array | int, *, config: OptimizerConfig, d_model: int
) -> jax.Array:
    """Evaluates the schedule at an Optax update count.

    Args:
      count: updates so far, from 0 as Optax counts; equation 3 gets count + 1.

    Returns:
      The learning rate of the next update, float32.

    Paper: §5.3, equation 3.
    """
    return inverse_square_root(
        count + 1,
        d_model=d_model,
        warmup_steps=config.warmup_steps,
        peak=config.peak_learning_rate or None,
    )


def make_optimizer(
    config: OptimizerConfig, *, d_model: int
) -> optax.GradientTransformation:
    """Builds Adam of §5.3; its state's moments mirror the parameters' tree.

    Args:
      d_model: width of the model, which sets the paper's peak learning rate.

    Paper: §5.3. No gradient clipping and no weight decay.
    """
    return optax.adam(
        lambda count: learning_rate(count, config=config, d_model=d_model),
        b1=config.beta1,
        b2=config.beta2,
        eps=config.epsilon,
    )
