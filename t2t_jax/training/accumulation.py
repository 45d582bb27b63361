"""Gradient accumulation over micro-batches and data shards.

A batch too large for the devices is processed in micro-batches, one after the other.
Each shard of the axis `data` accumulates its own gradients, which are reduced once, at
the end: many micro-batches cost no more communication than one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t2t_jax.functional.scan_sum import scan_sum
from t2t_jax.training.config import TrainingConfig
from t2t_jax.types import Array, Batch, Params, PyTree

Aux = TypeVar("Aux")


class MicroBatching(NamedTuple):
    """How a step splits its batch.

    Attributes:
      micro_batches: parts that each device processes one after the other.
      gradient_dtype: of the gradients in the reduction over the axis `data`:
        "float32" or "bfloat16". Over the other axes they are always float32.
      loss_chunks: chunks of each target for which logits and loss are computed one
        after the other; see `functional.chunked_loss`.
    """

    micro_batches: int = 1
    gradient_dtype: str = "float32"
    loss_chunks: int = 1

    @classmethod
    def of(cls, config: TrainingConfig, micro_batches: int) -> MicroBatching:
        """Returns the configured values, with this number of micro-batches."""
        return cls(micro_batches, config.gradient_dtype, config.loss_chunks)


NO_MICRO_BATCHING = MicroBatching()


def accumulate_gradients(
    sums: Callable[[Params, Batch], tuple[jax.Array, Aux]],
    params: Params,
    batch: Batch,
    *,
    mesh: Mesh,
    split: MicroBatching = NO_MICRO_BATCHING,
) -> tuple[Params, Aux]:
    """Differentiates a sum over the rows of a batch. Call it under `jax.jit`.

    Args:
      sums: (params, rows) -> (the sum to differentiate, other sums); sums over rows, so
        that those of a batch are the sum of those of its parts.
      batch: B rows, divisible by the row shards of `mesh` times the micro-batches.

    Returns:
      The gradient with respect to `params`, and the other sums.
    """
    gradient = jax.grad(sums, has_aux=True)
    if mesh.shape["data"] == split.micro_batches == 1:
        function: tuple[Params, Aux] = gradient(params, batch)
        return function
    # By default the compiler would reduce a gradient for each use of a parameter (three
    # of the embedding), and for each micro-batch.
    shard_gradients = jax.vmap(gradient, in_axes=(None, 0), spmd_axis_name="data")
    parts = jax.tree.map(
        lambda x: _parts(x, mesh=mesh, micro_batches=split.micro_batches), batch
    )
    gradients, others = _accumulate(shard_gradients, params, parts)
    # With one shard there is no reduction, and no rounding.
    exchange = jnp.dtype(split.gradient_dtype if mesh.shape["data"] > 1 else "float32")
    added = jax.tree.map(lambda g: _sum_shards(g, exchange), gradients)
    return added, jax.tree.map(lambda x: x.sum(axis=0), others)


def _parts(x_Bx: Array, *, mesh: Mesh, micro_batches: int) -> jax.Array:
    """Reshapes rows to [micro-batch, shard of data, rows], without moving any."""
    data, fsdp = mesh.shape["data"], mesh.shape["fsdp"]
    rest = x_Bx.shape[1:]
    x = jnp.asarray(x_Bx).reshape(data, fsdp, micro_batches, -1, *rest)
    x = jnp.moveaxis(x, 2, 0).reshape(micro_batches, data, -1, *rest)
    sharding = NamedSharding(mesh, PartitionSpec(None, "data", "fsdp"))
    parts: jax.Array = jax.lax.with_sharding_constraint(x, sharding)
    return parts


def _accumulate(
    function: Callable[[Params, Batch], PyTree], params: Params, parts: Batch
) -> PyTree:
    """Sums the results of each micro-batch, the first axis of `parts`."""
    if len(parts.rows) == 1:
        return function(params, jax.tree.map(lambda x: x[0], parts))

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
