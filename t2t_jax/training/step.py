"""One optimizer step: loss, gradient, update; and how it is jitted for a mesh."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t2t_jax.devices.fault_injection import with_injected_nan
from t2t_jax.devices.sharding.mesh import ROW_AXES, mesh_or_default, row_shards
from t2t_jax.devices.sharding.rules import batch_sharding, dtype_shape, replicated
from t2t_jax.errors import ConfigError
from t2t_jax.functional.chunked_loss import scan_sum
from t2t_jax.functional.moving_average import moving_average
from t2t_jax.model.architectures import resolve_module
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.loss import (
    Sums,
    batch_of_shape,
    batch_sums,
    forward_loss,
    require_head,
    training_loss,
)
from t2t_jax.training.optimizer import trained_part
from t2t_jax.training.schedule_free import gradient_params
from t2t_jax.training.state import TrainState, state_shapes, state_shardings
from t2t_jax.types import Array, Batch, Params, PyTree

Aux = TypeVar("Aux")


class StepOutput(NamedTuple):
    """The metrics of a step.

    Attributes:
      gradient_norm: global L2 norm of the gradient of the mean loss, without frozen
        parameters.
      applied: bool scalar, whether the update was applied; see `skip_bad_updates`.
    """

    sums: Sums
    gradient_norm: jax.Array
    applied: jax.Array | bool = True


Step: TypeAlias = Callable[
    [TrainState, Batch, jax.Array | int], tuple[TrainState, StepOutput]
]
"""(state, batch, key or seed) -> (state after the step, its metrics)."""

Loss: TypeAlias = Callable[[nn.Module, Params, Batch, jax.Array], jax.Array]
"""(module, params, batch, dropout key) -> a sum over the batch's real target tokens."""

DEFAULT = TrainingConfig()


def train_step(
    state: TrainState,
    batch: Batch,
    key: jax.Array | int,
    *,
    config: TrainingConfig,
    module: nn.Module,
    optimizer: optax.GradientTransformation,
    mesh: Mesh,
    loss: Loss | None = None,
) -> tuple[TrainState, StepOutput]:
    """Computes one update of the parameters.

    The loss is summed over the real target tokens of the global batch, and divided by
    their number.

    Args:
      key: the run's dropout key, or a seed; that of the step is folded from it and
        `state.step`.
      loss: instead of `training_loss`.

    Raises:
      TypeError: `loss` does not return a scalar.

    Paper: §5.3, §5.4.
    """
    if jnp.issubdtype(jnp.result_type(key), jnp.integer) and not jnp.ndim(key):
        key = jax.random.key(key)
    if loss is None:
        sums_of_rows = partial(training_loss, module, config=config)
    else:
        sums_of_rows = partial(_sums_of_own, loss, module)
    gradient, sums = accumulate_gradients(
        partial(sums_of_rows, dropout_key=jax.random.fold_in(key, state.step)),
        gradient_params(state.params, state.optimizer),
        batch,
        mesh=mesh,
        micro_batches=config.micro_batches or 1,
        gradient_dtype=config.gradient_dtype,
    )
    # A batch of nothing but padding must not divide by zero.
    count = jnp.maximum(jnp.asarray(sums.target_tokens), 1)
    trained = trained_part(gradient, config.frozen) if config.frozen else gradient
    # Of the sum, so that its quotient need not be stored.
    norm = optax.tree.norm(trained) / count
    gradient = jax.tree.map(lambda g: g / count, gradient)
    update = optax.with_extra_args_support(optimizer).update
    value = jnp.asarray(sums.loss) / count  # that reduce_on_plateau and others ask for
    updates, moments = update(gradient, state.optimizer, state.params, value=value)
    params = optax.apply_updates(state.params, updates)
    ema = state.ema
    if ema is not None:
        ema = moving_average(ema, params, decay=config.ema_decay, count=state.step)
    return TrainState(state.step + 1, params, moments, ema), StepOutput(sums, norm)


def _sums_of_own(
    loss: Loss,
    module: nn.Module,
    params: Params,
    rows: Batch,
    *,
    dropout_key: jax.Array,
) -> tuple[jax.Array, Sums]:
    """Computes a loss of the user, as `training_loss` does the paper's."""
    total = _as_scalar(loss(module, params, rows, dropout_key))
    unknown, real = jnp.asarray(jnp.nan), rows.target_segments > 0
    return total, batch_sums(rows, real, loss=total, nll=unknown, correct=unknown)


def _as_scalar(total: Any) -> jax.Array:
    """Checks what a loss of the user returns."""
    is_scalar = jax.tree_util.all_leaves([total]) and not jnp.ndim(total)
    if is_scalar and jnp.issubdtype(jnp.result_type(total), jnp.floating):
        return jnp.asarray(total)
    found = jax.tree.map(lambda leaf: dtype_shape(jnp.asarray(leaf)), total)
    raise TypeError(
        "loss= must return a floating-point scalar, a sum over the real target tokens, "
        f"and returned {found}. Return jnp.sum(…, where=batch.target_segments > 0), "
        "and nothing else."
    )


def accumulate_gradients(
    sums: Callable[[Params, Batch], tuple[jax.Array, Aux]],
    params: Params,
    batch: Batch,
    *,
    mesh: Mesh,
    micro_batches: int = 1,
    gradient_dtype: str = "float32",
) -> tuple[Params, Aux]:
    """Differentiates a sum over the rows of a batch. Call it under `jax.jit`.

    A batch too large for the devices is processed in micro-batches, one after the
    other. Each shard of the axis `data` accumulates its own gradients, which are
    reduced once, at the end: many micro-batches cost no more communication than one.

    Args:
      sums: (params, rows) -> (the sum to differentiate, other sums); sums over rows, so
        that those of a batch are the sum of those of its parts.
      batch: B rows, divisible by the row shards of `mesh` times the micro-batches.
      gradient_dtype: of the gradients in the reduction over the axis `data`:
        "float32" or "bfloat16". Over the other axes they are always float32.

    Returns:
      The gradient with respect to `params`, and the other sums.

    Raises:
      ValueError: the rows cannot be split so.
    """
    _require_divisible(batch, mesh=mesh, micro_batches=micro_batches)
    gradient: Callable[..., tuple[Params, Aux]] = jax.grad(sums, has_aux=True)

    def of_shard(params: Params, rows: Batch) -> tuple[Params, Aux]:
        if micro_batches == 1:
            return gradient(params, rows)
        parts = _parts(rows, mesh=mesh, micro_batches=micro_batches)
        summed: tuple[Params, Aux] = _accumulate(gradient, params, parts)
        return summed

    if mesh.shape["data"] == 1:
        return of_shard(params, batch)
    # By default the compiler would reduce a gradient for each use of a parameter (three
    # of the embedding), and for each micro-batch.
    exchange = jnp.dtype(gradient_dtype)
    if mesh.size == mesh.shape["data"]:

        def of_device(params: Params, rows: Batch) -> tuple[Params, Aux]:
            gradient, others = of_shard(params, rows)
            rounded = jax.tree.map(lambda g: g.astype(exchange), gradient)
            added = jax.lax.psum(rounded, "data")
            return (
                jax.tree.map(lambda g, like: g.astype(like.dtype), added, gradient),
                jax.lax.psum(others, "data"),
            )

        return _map_devices(of_device, mesh)(params, batch)
    # XLA cannot split a table over some axes where others are mapped by hand.
    shards = jax.tree.map(lambda x: _shards(x, mesh), batch)
    map_shards = jax.vmap(of_shard, in_axes=(None, 0), spmd_axis_name="data")
    gradients, others = map_shards(params, shards)
    added = jax.tree.map(lambda g: _sum_shards(g, exchange), gradients)
    return added, jax.tree.map(lambda x: x.sum(axis=0), others)


def _require_divisible(batch: Batch, *, mesh: Mesh, micro_batches: int) -> None:
    parts = micro_batches * row_shards(mesh)
    if len(batch.source) % parts:
        raise ValueError(
            f"A batch of {len(batch.source)} rows must be divisible by {parts}, the "
            f"micro_batches={micro_batches} of each of the devices that split rows. "
            "Pass batches(…, micro_batches=…) the same number, or add empty rows."
        )


def _map_devices(function: Callable[..., Aux], mesh: Mesh) -> Callable[..., Aux]:
    """Maps a sum over rows over devices that hold all parameters and some rows.

    Kernels of an accelerator need this: JAX cannot split them by itself.
    """
    return jax.shard_map(
        function,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec(ROW_AXES)),
        out_specs=PartitionSpec(),
        check_vma=False,
    )


def _shards(x_Bx: Array, mesh: Mesh) -> jax.Array:
    """Reshapes rows to [shard of data, rows], without moving any."""
    x = jnp.asarray(x_Bx).reshape(mesh.shape["data"], -1, *x_Bx.shape[1:])
    sharding = NamedSharding(mesh, PartitionSpec("data", "fsdp"))
    shards: jax.Array = jax.lax.with_sharding_constraint(x, sharding)
    return shards


def _parts(rows: Batch, *, mesh: Mesh, micro_batches: int) -> Batch:
    """Reshapes rows to [micro-batch, rows], without moving any."""
    fsdp = mesh.shape["fsdp"]

    def split(x_Bx: Array) -> jax.Array:
        rest = x_Bx.shape[1:]
        x = jnp.asarray(x_Bx).reshape(fsdp, micro_batches, -1, *rest)
        x = jnp.moveaxis(x, 1, 0).reshape(micro_batches, -1, *rest)
        if fsdp > 1:
            sharding = NamedSharding(mesh, PartitionSpec(None, "fsdp"))
            x = jax.lax.with_sharding_constraint(x, sharding)
        return x

    return Batch._make(map(split, rows))


def _accumulate(
    function: Callable[[Params, Batch], PyTree], params: Params, parts: Batch
) -> PyTree:
    """Sums the results of each micro-batch, the first axis of `parts`."""

    def run_part(part: Batch) -> tuple[PyTree, None]:
        # Otherwise XLA gathers all sharded parameters at once, before the loop.
        inside, part = jax.lax.optimization_barrier((params, part))
        return function(inside, part), None

    return scan_sum(run_part, parts)[0]


def _sum_shards(gradients: jax.Array, exchange: Any) -> jax.Array:
    """Sums over the first axis; `jnp.sum` would reduce bfloat16 as float32."""
    zero = jnp.zeros((), exchange)
    rounded = gradients.astype(exchange)
    total: jax.Array = jax.lax.reduce(rounded, zero, jax.lax.add, (0,))
    return jnp.asarray(total, gradients.dtype)


def skip_bad_updates(step: Step, *, skip_gradient_norm: float = 0.0) -> Step:
    """Wraps a step so that bad updates are not applied.

    Where loss or gradient norm are not finite, the norm exceeds the limit, or the batch
    has no target tokens, parameters and optimizer state (its update count too) stay
    bit for bit the same; only `state.step` advances, and with it the dropout masks.

    Args:
      skip_gradient_norm: largest gradient norm of an update; 0 for no limit.

    Returns:
      A step that reports `applied`.
    """

    def guarded_step(
        state: TrainState, batch: Batch, key: jax.Array | int
    ) -> tuple[TrainState, StepOutput]:
        after, output = step(state, batch, key)
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


def make_train_step(
    module: nn.Module,
    optimizer: optax.GradientTransformation,
    *,
    mesh: Mesh | None = None,
    config: TrainingConfig = DEFAULT,
    loss: Loss | None = None,
    shardings: TrainState | None = None,
) -> Step:
    """Makes the jitted training step for all devices of a mesh.

    The step takes the state of `init_state`, a batch of the rows of all devices, and a
    PRNG key or a seed below 2^31 (of a larger one its `jax.random.key`), the same at
    every step, into which it folds `state.step`. It donates the state, and where loss
    or gradient are not finite it changes only `state.step`. Each shape of batches is
    compiled when it is first seen.

    Args:
      module: a `Transformer`, or any Linen module that is called as one. Type and
        attention kernel that are "auto" become those for the devices.
      optimizer: any of Optax that takes a gradient, the parameters and, as
        `reduce_on_plateau`, the mean loss as `value`.
      mesh: that of the state; None for all devices along `data`.
      config: label smoothing, micro-batches and what else the step computes; `frozen`
        is the optimizer's, and what follows a bad step the loop's.
      loss: (module, params, batch, dropout key) -> scalar, instead of the paper's; a
        sum over the real target tokens of the rows that it is given, which are a part
        of the batch. The step differentiates its sum over the batch, divided by the
        number of these tokens; `nll` and `correct` are then NaN. See `batch_logits`.
      shardings: those of the state, if it was given some.

    Returns:
      (state, batch, key or seed) -> (state after the step, `StepOutput`).

    Raises:
      ConfigError, ValueError: as in `init_state`; or the module has no `head`, which a
        key of the training needs.
      TypeError: by the step, if `loss` does not return a scalar.

    Example:
      >>> import optax
      >>> import t2t_jax
      >>> config = t2t_jax.TransformerConfig(vocab_size=11, num_layers=1)
      >>> module, optimizer = t2t_jax.Transformer(config), optax.adam(1e-4)
      >>> state = t2t_jax.init_state(module, optimizer, 0)
      >>> step = make_train_step(module, optimizer)
      >>> rows = jnp.ones((8, 5), jnp.int32)
      >>> batch = Batch(*[rows] * 7, rows=jnp.arange(8))
      >>> state, output = step(state, batch, 1)
      >>> int(state.step), int(output.sums.target_tokens), bool(output.applied)
      (1, 40, True)

    Paper: §5.
    """
    if loss is not None and (config.simcut or config.r_drop):
        raise ConfigError(
            "training.simcut and training.r_drop belong to the loss that loss= "
            "replaces. Set them to 0."
        )
    if loss is None:
        require_head(module, config)
    mesh = mesh_or_default(mesh)
    module = resolve_module(module, mesh)
    if shardings is None:
        shapes = state_shapes(module, optimizer, ema=config.ema_decay > 0)
        shardings = state_shardings(shapes, mesh)
    step = partial(
        train_step,
        config=config,
        module=module,
        optimizer=optimizer,
        mesh=mesh,
        loss=loss,
    )
    return jax.jit(
        skip_bad_updates(
            with_injected_nan(step), skip_gradient_norm=config.skip_gradient_norm
        ),
        in_shardings=(shardings, batch_sharding(mesh), replicated(mesh)),
        out_shardings=(shardings, replicated(mesh)),
        donate_argnums=0,
    )


def lower_step(
    step: Any, state: TrainState, *, batch_shape: tuple[int, int]
) -> jax.stages.Lowered:
    """Lowers a step from `make_train_step` for the compiler, without allocating.

    Args:
      state: shapes of the state.
      batch_shape: (B, L) of the global batch, the same on both sides.
    """
    batch, key = batch_of_shape(batch_shape), jax.eval_shape(jax.random.key, 0)
    lowered: jax.stages.Lowered = step.lower(state, batch, key)
    return lowered


def compile_evaluation(
    module: nn.Module, *, label_smoothing: float, mesh: Mesh, loss_chunks: int = 1
) -> Callable[[Params, Batch], Sums]:
    """Returns a jitted `(params, batch) -> Sums` without dropout."""
    sums: Callable[[Params, Batch], Sums] = partial(
        forward_loss, module, label_smoothing=label_smoothing, loss_chunks=loss_chunks
    )
    if 1 < mesh.size == mesh.shape["data"]:
        of_device = sums
        sums = _map_devices(lambda *x: jax.lax.psum(of_device(*x), "data"), mesh)
    return jax.jit(
        sums, in_shardings=(None, batch_sharding(mesh)), out_shardings=replicated(mesh)
    )
