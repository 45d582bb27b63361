"""One optimizer step: a pure function, compiled once for all devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax.sharding import Mesh

from t2t_jax.runtime.fault_injection import maybe_inject_nan
from t2t_jax.sharding.rules import batch_sharding, replicated
from t2t_jax.training.accumulation import (
    NO_MICRO_BATCHING,
    MicroBatching,
    accumulate_gradients,
)
from t2t_jax.training.loss import forward_loss
from t2t_jax.training.metrics import Sums
from t2t_jax.training.state import TrainState, state_shardings
from t2t_jax.types import Batch, Params


class StepOutput(NamedTuple):
    """The metrics of a step.

    Attributes:
      sums: of the batch, before the update.
      gradient_norm: global L2 norm of the gradient of the mean loss.
      applied: bool scalar, whether the update was applied; see `skip_bad_updates`.
    """

    sums: Sums
    gradient_norm: jax.Array
    applied: jax.Array | bool = True


Step: TypeAlias = Callable[..., tuple[TrainState, StepOutput]]
"""(state, batch, key) -> (state after the step, its metrics)."""


def train_step(
    state: TrainState,
    batch: Batch,
    key: jax.Array,
    *,
    module: nn.Module,
    optimizer: optax.GradientTransformation,
    label_smoothing: float,
    mesh: Mesh,
    split: MicroBatching = NO_MICRO_BATCHING,
) -> tuple[TrainState, StepOutput]:
    """Computes one update of the parameters.

    The loss is summed over the real target tokens of the global batch, and divided by
    their number.

    Args:
      key: the run's dropout key; that of the step is folded from it and `state.step`.
      label_smoothing: probability mass spread over the vocabulary.
      split: the micro-batches; they change only the order of sums.

    Paper: §5.3, §5.4.
    """
    dropout_key = jax.random.fold_in(key, state.step)

    def loss_and_sums(params: Params, rows: Batch) -> tuple[jax.Array, Sums]:
        sums = forward_loss(
            module,
            params,
            rows,
            label_smoothing=label_smoothing,
            dropout_key=dropout_key,
            loss_chunks=split.loss_chunks,
        )
        loss = maybe_inject_nan(jnp.asarray(sums.loss), state.step)
        return loss, sums._replace(loss=loss)

    gradient, sums = accumulate_gradients(
        loss_and_sums, state.params, batch, mesh=mesh, split=split
    )
    # A batch of nothing but padding must not divide by zero.
    count = jnp.maximum(jnp.asarray(sums.target_tokens), 1)
    gradient = jax.tree.map(lambda g: g / count, gradient)
    updates, moments = optimizer.update(gradient, state.optimizer, state.params)
    params = optax.apply_updates(state.params, updates)
    output = StepOutput(sums, optax.tree.norm(gradient))
    return TrainState(state.step + 1, params, moments), output


def skip_bad_updates(step: Step, *, skip_gradient_norm: float = 0.0) -> Step:
    """Wraps a step so that bad updates are not applied.

    Where loss or gradient norm are not finite, the norm exceeds the limit, or the batch
    has no target tokens, parameters and optimizer state (its update count too) stay
    bit for bit the same; only `state.step` advances, and with it the dropout masks.

    Args:
      step: `train_step`, with arguments bound.
      skip_gradient_norm: largest gradient norm of an update; 0 for no limit.

    Returns:
      A step that reports `applied`.
    """

    def guarded_step(
        state: TrainState, batch: Batch, key: jax.Array, **bound: Any
    ) -> tuple[TrainState, StepOutput]:
        after, output = step(state, batch, key, **bound)
        norm = output.gradient_norm
        good = jnp.isfinite(output.sums.loss) & jnp.isfinite(norm)
        good &= jnp.asarray(output.sums.target_tokens) > 0
        if skip_gradient_norm:
            good &= norm <= skip_gradient_norm
        # The old values are read for the update anyway. Measured: 3 % of a step of
        # 1,024 tokens on a CPU, less of a larger one; and the memory of a gradient,
        # since no update can start before the full gradient is known.
        kept = jax.tree.map(partial(jnp.where, good), after, state)
        return kept._replace(step=after.step), output._replace(applied=good)

    return guarded_step


def compile_step(
    step: Step,
    state: TrainState,
    *,
    batch_shape: tuple[int, int],
    mesh: Mesh,
    shard_optimizer: bool = False,
) -> Step:
    """Compiles `step(state, batch, key)` ahead of time for all devices of the mesh.

    Args:
      step: `train_step`, guarded or not, with all but state, batch and key bound.
      state: shapes of the state.
      batch_shape: (B, L) of the global batch, the same on both sides.

    Returns:
      The compiled function; its state argument is donated.
    """
    return lower_step(
        step,
        state,
        batch_shape=batch_shape,
        mesh=mesh,
        shard_optimizer=shard_optimizer,
    ).compile()


def lower_step(
    step: Step,
    state: TrainState,
    *,
    batch_shape: tuple[int, int],
    mesh: Mesh,
    shard_optimizer: bool = False,
) -> jax.stages.Lowered:
    """Lowers `step` for the compiler, for cost analysis without allocating anything.

    The arguments are those of `compile_step`.
    """
    shardings = state_shardings(state, mesh, shard_optimizer=shard_optimizer)
    replicated_sharding = replicated(mesh)
    jitted = jax.jit(
        step,
        in_shardings=(shardings, batch_sharding(mesh), replicated_sharding),
        out_shardings=(shardings, replicated_sharding),
        donate_argnums=0,
    )
    shapes = [batch_shape] * (len(Batch._fields) - 1) + [batch_shape[:1]]
    batch: Any = Batch._make(jax.ShapeDtypeStruct(s, jnp.int32) for s in shapes)
    return jitted.lower(state, batch, jax.eval_shape(jax.random.key, 0))
