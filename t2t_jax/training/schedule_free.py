"""Schedule-free AdamW: an average of the parameters in place of a decaying rate.

Defazio et al., "The Road Less Scheduled" (2024). Three sequences: z moves by Adam's
normalized gradients; x is a weighted average of all z, and the model that is evaluated;
the gradient is taken at y = (1 - b1) z + b1 x.

The authors' AdamWScheduleFree stores y and z, and derives x from them to evaluate. Here
x and z are stored, and y is derived: what is saved is exact, and x is the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from t2t_jax.types import Params, PyTree


class ScheduleFreeState(NamedTuple):
    """The state beside x, the parameters.

    Attributes:
      num_updates: int32 scalar, updates so far.
      b1: float32 scalar, the weight of x in y.
      z: the sequence of steps; where parameters are masked, so is it.
      nu: the second moment of the gradient.
    """

    num_updates: jax.Array
    b1: jax.Array
    z: PyTree
    nu: PyTree


def schedule_free_adamw(
    learning_rate: Callable[[jax.Array], jax.Array],
    *,
    warmup_steps: int,
    b1: float,
    b2: float,
    eps: float,
    weight_decay: float = 0.0,
    mask: Callable[[Params], PyTree] | None = None,
) -> optax.GradientTransformation:
    """Makes the optimizer; its parameters are x, its gradients must be those at y.

    Gradients are taken at `gradient_params(params, state)`. The first moment is x
    itself, so there are two trees of state, as with Adam.

    Args:
      learning_rate: maps the number of updates so far to the rate of the next: linear
        over `warmup_steps`, then constant.
      warmup_steps: z of update t has weight min(t / warmup_steps, 1)^2 in x.
      b1: weight of x in y, in [0, 1).
      b2: decay rate of the second moment.
      weight_decay: times the rate, the share of y that is subtracted from z.
      mask: returns the tree of booleans of the parameters that are decayed; None for
        all.

    Departs: §5.3 has Adam and a rate that decays as 1 / sqrt(step).
    """

    def init(params: Params) -> ScheduleFreeState:
        # Copied: x and z are donated as two buffers.
        z = jax.tree.map(jnp.copy, params)
        nu = optax.tree.zeros_like(params)
        return ScheduleFreeState(jnp.zeros((), jnp.int32), jnp.float32(b1), z, nu)

    def update(
        gradient: Params, state: ScheduleFreeState, params: Params | None = None
    ) -> tuple[Params, ScheduleFreeState]:
        if params is None:
            raise ValueError(
                "schedule_free_adamw needs the parameters, which are an average of its "
                "steps. Pass params to update."
            )
        count = optax.safe_increment(state.num_updates)
        nu = optax.tree.update_moment_per_elem_norm(gradient, state.nu, b2, 2)
        unbiased = optax.tree.bias_correction(nu, b2, count)
        step = jax.tree.map(lambda g, v: g / (jnp.sqrt(v) + eps), gradient, unbiased)
        if weight_decay:
            decay = optax.add_decayed_weights(weight_decay, mask)
            y = _interpolate(params, state.z, 1 - state.b1)
            step, _ = decay.update(step, decay.init(params), y)
        rate = learning_rate(state.num_updates)
        z = jax.tree.map(lambda z, s: z - rate * s, state.z, step)
        share = average_weight(count, warmup_steps=warmup_steps)
        updates = jax.tree.map(lambda z, x: share * (z - x), z, params)
        return updates, ScheduleFreeState(count, state.b1, z, nu)

    return optax.GradientTransformation(init, update)


def average_weight(count: jax.Array | int, *, warmup_steps: int) -> jax.Array:
    """Computes the weight of the newest z in x: its squared rate over the sum of all.

    In closed form: a float32 sum of a million squares would be off by percents.

    Args:
      count: the number of the update, from 1.

    Example:
      >>> [round(float(average_weight(n, warmup_steps=2)), 4) for n in (1, 2, 3)]
      [1.0, 0.8, 0.4444]
    """
    t = jnp.asarray(count, jnp.float32)
    during = 6 * t / ((t + 1) * (2 * t + 1))
    ramp = (warmup_steps + 1) * (2 * warmup_steps + 1) / (6 * warmup_steps)
    after = 1 / (ramp + jnp.maximum(t - warmup_steps, 0))
    return jnp.where(t <= warmup_steps, during, after)


def gradient_params(params: Params, optimizer_state: PyTree) -> Params:
    """Returns the parameters at which the optimizer needs the gradient.

    Args:
      params: those of the training state.
      optimizer_state: of any optimizer, also as a part of others.

    Returns:
      y, where the state has a `ScheduleFreeState`; else `params` themselves.
    """
    nodes = jax.tree.leaves(optimizer_state, is_leaf=_is_schedule_free)
    for state in filter(_is_schedule_free, nodes):
        params = _interpolate(params, state.z, 1 - state.b1)
    return params


def _is_schedule_free(node: object) -> bool:
    return isinstance(node, ScheduleFreeState)


def _interpolate(x: Params, z: PyTree, share: jax.Array) -> Params:
    """Returns x + share * (z - x), and x where z is masked."""
    return jax.tree.map(
        lambda z, x: x if isinstance(z, optax.MaskedNode) else x + share * (z - x),
        z,
        x,
        is_leaf=lambda node: isinstance(node, optax.MaskedNode),
    )
