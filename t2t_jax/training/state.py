"""The training state: parameters and optimizer."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax.sharding import Mesh, Sharding

from t2t_jax.devices.sharding.mesh import mesh_or_default
from t2t_jax.devices.sharding.rules import shardings_for
from t2t_jax.model.architectures import require_params_of
from t2t_jax.types import Params, PyTree


class TrainState(NamedTuple):
    """Parameters and optimizer state after `step` updates.

    It holds no PRNG key: that of a step is folded from the seed and `step`.

    Attributes:
      step: int32 scalar, steps done.
      params: nested dict of float32 arrays, which the updates are added to.
      ema: their exponential moving average, float32; None without
        `training.ema_decay`.

    Example:
      >>> state = TrainState(jnp.int32(0), {"w": jnp.ones(2)}, optax.EmptyState())
      >>> evaluation_params(state._replace(ema={"w": jnp.zeros(2)}))["w"].tolist()
      [0.0, 0.0]
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
    key: jax.Array | int,
    *,
    mesh: Mesh | None = None,
    params: Params | None = None,
    ema: bool = False,
    shardings: TrainState | None = None,
) -> TrainState:
    """Initializes parameters and optimizer on the devices of a mesh.

    Collective if the mesh spans several processes: call on every process.

    Args:
      module: a `Transformer`, or any Linen module that is called as one.
      key: a PRNG key or a seed, the same on every process.
      mesh: from `t2t_jax.make_mesh`; None for all devices along `data`.
      params: to begin with, which are copied; None for random ones.
      ema: whether the state has a moving average of the parameters, as a step with
        `TrainingConfig(ema_decay=…)` needs it.
      shardings: of each array, instead of those that the mesh gives.

    Returns:
      The state at step 0, for the step that `make_train_step` makes.

    Raises:
      ConfigError: an axis of the model is not divisible by one of the mesh.
      UserError: `params` are not those of the module, type included.
      ValueError: the mesh is not one of `make_mesh`; or it splits parameters, and no
        sharding rule matches one of the module's.

    Example:
      >>> import optax
      >>> from t2t_jax import Transformer, TransformerConfig
      >>> module = Transformer(TransformerConfig(vocab_size=11, num_layers=1))
      >>> state = init_state(module, optax.adam(1e-4), 0)
      >>> state.params["embedding"]["table"].shape, int(state.step)
      ((11, 512), 0)
    """
    is_seed = jnp.issubdtype(jnp.result_type(key), jnp.integer) and not jnp.ndim(key)
    key = jax.random.key(key) if is_seed else jnp.asarray(key)
    new = partial(_new_state, module, optimizer, key, ema=ema)
    if shardings is None:
        mesh = mesh_or_default(mesh)
        shardings = state_shardings(jax.eval_shape(new, params), mesh)
    if params is not None:
        require_params_of(module, params)
        params = jax.tree.map(_place, params, shardings.params)
    state: TrainState = jax.jit(new, out_shardings=shardings)(params)
    return state


def _new_state(
    module: nn.Module,
    optimizer: optax.GradientTransformation,
    key: jax.Array,
    params: Params | None,
    *,
    ema: bool,
) -> TrainState:
    if params is None:
        token = jnp.ones((1, 1), jnp.int32)
        params = module.init(key, token, token)["params"]
    else:  # Else the step would donate what it was given.
        params = jax.tree.map(jnp.copy, params)
    # Copied: parameters and average are donated as two buffers.
    average = jax.tree.map(jnp.copy, params) if ema else None
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params), average)


def _place(array: Any, sharding: Sharding) -> jax.Array:
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    values = np.asarray(array)
    return jax.make_array_from_callback(values.shape, sharding, values.__getitem__)


def state_shapes(
    module: nn.Module, optimizer: optax.GradientTransformation, *, ema: bool = False
) -> TrainState:
    """Returns the shapes of the state that `init_state` returns; computes nothing."""
    new = partial(_new_state, module, optimizer, jax.random.key(0), None, ema=ema)
    shapes: TrainState = jax.eval_shape(new)
    return shapes


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
