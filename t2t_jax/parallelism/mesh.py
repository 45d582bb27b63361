"""The devices of a run, as a mesh.

Paper: §5.2 trains on 8 GPUs of one machine, each with a part of every batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

DATA = "data"
"""The mesh axis over which the rows of a batch are split."""


def make_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Returns a mesh with one axis, `data`.

    Args:
      devices: the devices to train on; None means all of this process's.

    Example:
      >>> dict(make_mesh(jax.devices()[:1]).shape)
      {'data': 1}
    """
    devices = jax.local_devices() if devices is None else devices
    # Auto, not the newer default Explicit: an ordinary Linen model does not say how
    # each of its intermediates is sharded, and need not.
    return Mesh(np.asarray(devices), (DATA,), axis_types=(AxisType.Auto,))


def rows_for(mesh: Mesh, rows: int) -> int:
    """Rounds `rows` up to a multiple of the data shards, by adding empty rows.

    Example:
      >>> rows_for(make_mesh(jax.devices()[:1]), 7)
      7
    """
    shards: int = mesh.shape[DATA]
    return -(-rows // shards) * shards
