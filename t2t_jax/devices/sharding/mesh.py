"""The device mesh of a run.

Paper: §5.2 trains on 8 GPUs of one machine, each with a part of every batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.errors import ConfigError
from t2t_jax.types import BatchShard

AXES = ("data", "fsdp", "tensor")
"""The axes of a mesh, in increasing order of communication."""

ROW_AXES = ("data", "fsdp")
"""The axes over which the rows of a batch are split."""


def make_mesh(
    devices: Sequence[jax.Device] | None = None,
    *,
    data: int = -1,
    fsdp: int = 1,
    tensor: int = 1,
) -> Mesh:
    """Arranges devices in a mesh of the axes `data`, `fsdp` and `tensor`.

    Rows of a batch are split over `data` and `fsdp`, parameters over `fsdp` and
    `tensor`. The product of the sizes is the number of devices.

    Args:
      devices: None means those of all processes, ordered by process, so that `tensor`
        and then `fsdp`, which communicate most, do so within a host.
      data: size of the axis that replicates the parameters. Of one axis the size may be
        -1: all devices that the other two leave.
      fsdp: size of the axis that splits rows and parameters.
      tensor: size of the axis that splits heads, the inner feed-forward width and the
        vocabulary.

    Returns:
      The mesh, whose axes have JAX's type `Auto`.

    Raises:
      ConfigError: the product of the sizes is not the number of devices.

    Example:
      >>> dict(make_mesh(jax.devices()[:4], fsdp=2).shape)
      {'data': 2, 'fsdp': 2, 'tensor': 1}
    """
    config = MeshConfig(data=data, fsdp=fsdp, tensor=tensor)
    if devices is None:
        devices = sorted(jax.devices(), key=lambda d: (d.process_index, d.id))
    sizes = _sizes(config, len(devices))
    # Auto, not the newer default Explicit, which requires the shardings of all
    # intermediates of a model.
    kinds = (AxisType.Auto,) * 3
    return Mesh(np.asarray(devices).reshape(sizes), AXES, axis_types=kinds)


def mesh_or_default(mesh: Mesh | None) -> Mesh:
    """Returns a mesh from `make_mesh`; for None that of all devices along `data`.

    Raises:
      ValueError: it has other axes, or axes that are not of the type `Auto`.
    """
    if mesh is None:
        return make_mesh()
    if mesh.axis_names != AXES or set(mesh.axis_types) != {AxisType.Auto}:
        raise ValueError(
            f"mesh must have the axes {', '.join(AXES)} of type Auto, and has "
            f"{', '.join(map(str, mesh.axis_names))} of type "
            f"{', '.join(kind.name for kind in mesh.axis_types)}. Pass "
            "t2t_jax.make_mesh(devices, data=…, fsdp=…, tensor=…)."
        )
    return mesh


def row_shards(mesh: Mesh) -> int:
    """Returns the number of shards of the rows of a batch."""
    return math.prod(mesh.shape[axis] for axis in ROW_AXES)


def local_batch_shard(mesh: Mesh, *, process: int) -> BatchShard:
    """Returns the shard of every batch that the devices of a process hold.

    Raises:
      ConfigError: the rows of the process are not one shard of equal size.

    Example:
      >>> local_batch_shard(make_mesh(), process=0)
      BatchShard(index=0, count=1)
    """
    owners = [d.process_index for d in mesh.devices.flat]
    own = [number for number, owner in enumerate(owners) if owner == process]
    tensor, shards = mesh.shape["tensor"], row_shards(mesh)
    first, last = own[0] // tensor, own[-1] // tensor
    size = last - first + 1
    if (len(own) % tensor and tensor % len(own)) or first % size or shards % size:
        rule = f"divide the {len(own)} devices of a process, or be a multiple of them"
        raise ConfigError(
            f"mesh.tensor={tensor} must {rule}. Change config.mesh.tensor."
        )
    return BatchShard(index=first // size, count=shards // size)


def _sizes(config: MeshConfig, devices: int) -> tuple[int, ...]:
    requested = config.axes
    fixed = math.prod(size for size in requested.values() if size != -1)
    sizes = tuple(devices // fixed if n == -1 else n for n in requested.values())
    if math.prod(sizes) == devices:
        return sizes
    product = " x ".join(f"{axis}={size}" for axis, size in requested.items())
    keys = [f"config.mesh.{axis}" for axis, n in requested.items() if n not in (1, -1)]
    multiple, rest = "a multiple of ", ""
    if -1 not in requested.values():
        multiple, rest = "", ", or set config.mesh.data=-1 for the rest of them"
    raise ConfigError(
        f"mesh {product} must arrange {devices} device{'s' * (devices > 1)}, which is "
        f"not {multiple}{fixed}. Change {', '.join(keys or requested)}{rest}."
    )
