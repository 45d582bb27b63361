"""The gradient of a sum over a batch, taken in parts and added up.

A batch that is too large for the devices is read in micro-batches, one after the other.
Each part of the axis `data` adds up its own gradients, and they are exchanged once, at
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
    """How a step takes its batch apart.

    Attributes:
      micro_batches: parts that each device reads one after the other.
      gradient_dtype: of the gradients as they are exchanged over the axis `data`:
        "float32" or "bfloat16". Over the other axes they are float32 always.
      loss_chunks: parts of a row's target of which logits and loss are computed one
        after the other; see `functional.chunked_loss`.
    """

    micro_batches: int = 1
    gradient_dtype: str = "float32"
    loss_chunks: int = 1

    @classmethod
    def of(cls, config: TrainingConfig, micro_batches: int) -> MicroBatching:
        """Takes what the configuration says, but for the number of micro-batches."""
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
    """Differentiates a sum over the rows of a batch; to be called under `jax.jit`.

    Args:
      sums: (params, rows) -> (what is differentiated, other sums); both are sums over
        the rows, so that those of a batch are those of its parts added up.
      batch: B rows, divisible by the row shards of `mesh` times the micro-batches.
      mesh: the devices over which the rows are split.

    Returns:
      The gradient by `params`, and the other sums.
    """
    gradient = jax.grad(sums, has_aux=True)
    if mesh.shape["data"] == split.micro_batches == 1:
        found: tuple[Params, Aux] = gradient(params, batch)
        return found
    # Left to itself the compiler lets the devices exchange a gradient for each use of
    # a parameter, which is three of the embedding, and those of each micro-batch.
    of_every_shard = jax.vmap(gradient, in_axes=(None, 0), spmd_axis_name="data")
    parts = jax.tree.map(
        lambda x: _parts(x, mesh=mesh, micro_batches=split.micro_batches), batch
    )
    gradients, others = _added_up(of_every_shard, params, parts)
    # With one part there is nothing to exchange, and nothing to round.
    exchange = jnp.dtype(split.gradient_dtype if mesh.shape["data"] > 1 else "float32")
    added = jax.tree.map(lambda g: _sum_of_shards(g, exchange), gradients)
    return added, jax.tree.map(lambda x: x.sum(axis=0), others)


def _parts(x_Bx: Array, *, mesh: Mesh, micro_batches: int) -> jax.Array:
    """Cuts rows into [micro-batch, shard of data, rows], each where it is already."""
    data, fsdp = mesh.shape["data"], mesh.shape["fsdp"]
    rest = x_Bx.shape[1:]
    x = jnp.asarray(x_Bx).reshape(data, fsdp, micro_batches, -1, *rest)
    x = jnp.moveaxis(x, 2, 0).reshape(micro_batches, data, -1, *rest)
    place = NamedSharding(mesh, PartitionSpec(None, "data", "fsdp"))
    parts: jax.Array = jax.lax.with_sharding_constraint(x, place)
    return parts


def _added_up(
    found: Callable[[Params, Batch], PyTree], params: Params, parts: Batch
) -> PyTree:
    """Adds up what is found in each micro-batch, the first axis of `parts`."""
    if len(parts.rows) == 1:
        return found(params, jax.tree.map(lambda x: x[0], parts))

    def of_part(part: Batch) -> tuple[PyTree, None]:
        # Or XLA would gather split parameters before the loop, all of them at once.
        inside, part = jax.lax.optimization_barrier((params, part))
        return found(inside, part), None

    return scan_sum(of_part, parts)[0]


def _sum_of_shards(gradients: jax.Array, exchange: Any) -> jax.Array:
    """Adds up over the first axis; `jnp.sum` would exchange bfloat16 as float32."""
    zero = jnp.zeros((), exchange)
    rounded = gradients.astype(exchange)
    total: jax.Array = jax.lax.reduce(rounded, zero, jax.lax.add, (0,))
    return jnp.asarray(total, gradients.dtype)
