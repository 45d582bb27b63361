"""All that training carries from one step to the next."""

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
    """Parameters and optimizer, after `step` updates.

    Randomness is no part of it: the key of a step is folded from the seed and `step`.

    Attributes:
      step: int32 scalar, updates made so far.
      params: nested dict of float32 arrays.
      optimizer: the Optax state.
    """

    step: jax.Array
    params: Params
    optimizer: PyTree


def init_state(
    module: nn.Module, optimizer: optax.GradientTransformation, key: jax.Array
) -> TrainState:
    """Draws the parameters and starts the optimizer; to be called under `jax.jit`.

    Args:
      key: PRNG key of the parameters.
    """
    token = jnp.ones((1, 1), jnp.int32)
    params = module.init(key, token, token)["params"]
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))


def state_shardings(
    state: TrainState, mesh: Mesh, *, shard_optimizer: bool = False
) -> TrainState:
    """Says on which devices each array of a state lives.

    Args:
      shard_optimizer: whether the moments are split over the axis `data` too, while
        the parameters are not ("ZeRO-1").

    Returns:
      The same tree, of `NamedSharding`.

    Raises:
      ConfigError: the model's axes do not divide by those of the mesh.
    """
    places: TrainState = shardings_for(state, mesh)
    if not shard_optimizer:
        return places
    moments = shardings_for(state.optimizer, mesh, over_data=True)
    return places._replace(optimizer=moments)
