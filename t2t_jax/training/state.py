"""The training state: parameters and optimizer."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax.sharding import Mesh

from t2t_jax.sharding.rules import shardings_for
from t2t_jax.types import Params, PyTree


class TrainState(NamedTuple):
    """Parameters and optimizer state after `step` updates.

    It holds no PRNG key: that of a step is folded from the seed and `step`.

    Attributes:
      step: int32 scalar, steps done.
      params: nested dict of float32 arrays.
    """

    step: jax.Array
    params: Params
    optimizer: PyTree


def init_state(
    module: nn.Module, optimizer: optax.GradientTransformation, key: jax.Array
) -> TrainState:
    """Initializes parameters and optimizer. Call it under `jax.jit`."""
    token = jnp.ones((1, 1), jnp.int32)
    params = module.init(key, token, token)["params"]
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))


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
