"""The training state: parameters and optimizer."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax.sharding import Mesh

from t2t_jax.devices.sharding.rules import shardings_for
from t2t_jax.types import Params, PyTree


class TrainState(NamedTuple):
    """Parameters and optimizer state after `step` updates.

    It holds no PRNG key: that of a step is folded from the seed and `step`.

    Attributes:
      step: int32 scalar, steps done.
      params: nested dict of float32 arrays, which the updates are added to.
      ema: their exponential moving average, float32; None without
        `training.ema_decay`.
    """

    step: jax.Array
    params: Params
    optimizer: PyTree
    ema: Params | None = None


def evaluation_params(state: TrainState) -> Params:
    """Returns the parameters that are evaluated, and saved as the model.

    They are the moving average if there is one. Those of schedule-free AdamW are an
    average themselves.
    """
    return state.params if state.ema is None else state.ema


def init_state(
    module: nn.Module,
    optimizer: optax.GradientTransformation,
    key: jax.Array,
    params: Params | None = None,
    *,
    ema: bool = False,
) -> TrainState:
    """Initializes parameters and optimizer. Call it under `jax.jit`.

    Args:
      params: to begin with; None for random ones.
      ema: whether the state has a moving average of the parameters.
    """
    if params is None:
        token = jnp.ones((1, 1), jnp.int32)
        params = module.init(key, token, token)["params"]
    step = jnp.zeros((), jnp.int32)
    # Copied: parameters and average are donated as two buffers.
    average = jax.tree.map(jnp.copy, params) if ema else None
    return TrainState(step, params, optimizer.init(params), average)


def state_shardings(
    state: TrainState, mesh: Mesh, *, shard_optimizer: bool = False
) -> TrainState:
    """Returns the `NamedSharding` of each array of a state.

    Args:
      shard_optimizer: whether the moments are sharded over the axis `data` too, while
        the parameters are not ("ZeRO-1").

    Raises:
      ConfigError: the model's axes are not divisible by those of the mesh.
    """
    shardings: TrainState = shardings_for(state, mesh)
    if not shard_optimizer:
        return shardings
    moments = shardings_for(state.optimizer, mesh, over_data=True)
    return shardings._replace(optimizer=moments)
