"""From a batch on the host to global arrays on the devices."""

from __future__ import annotations

import jax
from jax.sharding import Mesh

from t2t_jax.parallelism.sharding import batch_sharding
from t2t_jax.types import Batch


def to_devices(batch: Batch, mesh: Mesh) -> Batch:
    """Splits the rows of `batch` over the data axis of `mesh`.

    Args:
      batch: NumPy arrays; B must be a multiple of the data shards. On a CPU a device
        array may share the memory of its NumPy array: do not write to it afterwards.
      mesh: the devices.

    Returns:
      The same batch as sharded device arrays.
    """
    placed: Batch = jax.device_put(batch, batch_sharding(mesh))
    return placed
