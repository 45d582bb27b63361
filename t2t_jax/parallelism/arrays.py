"""From rows on this process to global arrays on the devices of all of them."""

from __future__ import annotations

import jax
from jax.sharding import Mesh

from t2t_jax.parallelism.sharding import batch_sharding
from t2t_jax.types import Batch


def to_devices(batch: Batch, mesh: Mesh) -> Batch:
    """Splits the rows of a batch over the row axes of `mesh`.

    Args:
      batch: NumPy arrays with this process's part of the rows, `mesh.row_share`; on a
        single process all of them. They must divide by this process's row shards. On
        a CPU a device array may share the memory of its NumPy array: do not write to
        it afterwards.
      mesh: the devices of all processes.

    Returns:
      The global batch, as sharded device arrays.

    Raises:
      ValueError: the rows do not divide.
    """
    place = batch_sharding(mesh)
    if jax.process_count() == 1:  # One transfer for all arrays.
        placed: Batch = jax.device_put(batch, place)
        return placed
    return Batch._make(
        jax.make_array_from_process_local_data(place, rows) for rows in batch
    )
