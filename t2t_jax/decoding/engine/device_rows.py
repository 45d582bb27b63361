"""Data-parallel decoding: the model is replicated, the rows are split over the devices.

Rows are independent, so the devices do not communicate. Each runs the program of a
single device on its part of the rows, and stops when its own rows are done.
(One program over all rows, partitioned by the compiler, would have to agree at every
token whether all of them are done.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t2t_jax.errors import UserError
from t2t_jax.types import Array, PyTree

_AXIS = "devices"

Tree = TypeVar("Tree")
Result = TypeVar("Result")


def devices_of(tree: PyTree) -> Mesh:
    """Returns a one-axis mesh of the devices that hold the arrays of a tree.

    Uncommitted arrays follow the others; without any the default device is used.

    Raises:
      ValueError: some of the devices belong to another process.

    Example:
      >>> devices_of({"kernel": jax.device_put(1.0, jax.devices()[0])}).size
      1
    """
    leaves = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    leaves.sort(key=lambda leaf: not leaf.committed)
    sharding = (leaves or [jax.numpy.zeros(())])[0].sharding
    if isinstance(sharding, NamedSharding):
        # In the same order: JAX cannot mix arrays with different device orders.
        devices = list(sharding.mesh.devices.flat)
    else:
        devices = sorted(sharding.device_set, key=lambda device: device.id)
    if any(device.process_index != jax.process_index() for device in devices):
        raise ValueError(
            "Cannot decode: the model is on devices of other processes too. Pass its "
            "parameters through "
            "t2t_jax.devices.distributed.gather.gather_to_local_devices first."
        )
    return Mesh(np.asarray(devices), (_AXIS,), axis_types=(AxisType.Auto,))


def abstract_key(tree: PyTree) -> Hashable:
    """Returns a cache key: tree structure, shapes, dtypes and shardings."""
    leaves, structure = jax.tree.flatten(tree)
    arrays = tuple((jax.typeof(x), getattr(x, "sharding", None)) for x in leaves)
    return structure, arrays


def shard_rows(rows: Array, mesh: Mesh) -> jax.Array:
    """Splits rows over the devices.

    Args:
      rows: [B, ...]; B must be a multiple of the devices. On a CPU the result may share
        its memory: do not write to it afterwards.

    Returns:
      [devices, B / devices, ...], each part on its device.

    Raises:
      UserError: B is not a multiple of the devices.

    Example:
      >>> shard_rows(np.ones((6, 5)), devices_of(())).shape
      (1, 6, 5)
    """
    num_rows, *trailing = np.shape(rows)
    if num_rows % mesh.size:
        raise UserError(
            f"{num_rows} rows must be a multiple of the {mesh.size} devices that hold "
            "the model. Add rows of pad, or put the model on one device."
        )
    parts = np.asarray(rows).reshape(mesh.size, num_rows // mesh.size, *trailing)
    by_device = NamedSharding(mesh, PartitionSpec(_AXIS))
    sharded: jax.Array = jax.device_put(parts, by_device)
    return sharded


def per_device(
    function: Callable[[Any, Any], Result], mesh: Mesh
) -> Callable[[PyTree, PyTree], Result]:
    """Runs `function` on every device independently. Call it under `jax.jit`.

    Args:
      function: `(shared, part) -> result`, on arrays without the device axis.

    Returns:
      `(shared, parts) -> results`: `shared` is replicated, and the leaves of `parts`
      and `results` are [devices, ...], each part on its device.

    Example:
      >>> mesh = devices_of(())
      >>> double = per_device(lambda factor, part: factor * part, mesh)
      >>> jax.jit(double)(2, shard_rows(np.array([3, 5]), mesh)).tolist()
      [[6, 10]]
    """

    def on_one(shared: PyTree, parts: PyTree) -> PyTree:
        result = function(shared, jax.tree.map(lambda leaf: leaf[0], parts))
        return jax.tree.map(lambda leaf: jax.numpy.expand_dims(leaf, 0), result)

    whole, split = PartitionSpec(), PartitionSpec(_AXIS)
    # The check looks for values that were not reduced over devices. Nothing is reduced
    # here, and it rejects the loops of ordinary models.
    return jax.shard_map(
        on_one, mesh=mesh, in_specs=(whole, split), out_specs=split, check_vma=False
    )


def gather_rows(results: Tree) -> Tree:
    """Fetches rows to the host, in order.

    Returns:
      The same pytree with NumPy leaves [B, ...].

    Example:
      >>> gather_rows(shard_rows(np.array([7, 5]), devices_of(()))).tolist()
      [7, 5]
    """
    rows: Tree = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), jax.device_get(results)
    )
    return rows
