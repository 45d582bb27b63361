"""Decoding on many devices: each has all of the model, and rows of its own.

What becomes of a row depends on no other, so the devices need not speak. Each runs the
program of a single one on its part of the rows, and stops when its own rows are done.
(One program over all rows, split by the compiler, would have to agree at every token
whether all of them are done.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t2t_jax.errors import UserError
from t2t_jax.types import Array, PyTree

_AXIS = "devices"

Tree = TypeVar("Tree")


def devices_of(tree: PyTree) -> Mesh:
    """Finds the devices that hold the arrays of a tree.

    Args:
      tree: a model or its parameters; arrays that are on no particular device follow
        the others.

    Returns:
      A mesh of one axis; of the default device if nothing says otherwise.

    Raises:
      ValueError: some of the devices are another process's.

    Example:
      >>> devices_of({"kernel": jax.device_put(1.0, jax.devices()[0])}).size
      1
    """
    leaves = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    leaves.sort(key=lambda leaf: not leaf.committed)
    sharding = (leaves or [jax.numpy.zeros(())])[0].sharding
    if isinstance(sharding, NamedSharding):
        # In their own order: JAX mixes no arrays whose devices are ordered otherwise.
        devices = list(sharding.mesh.devices.flat)
    else:
        devices = sorted(sharding.device_set, key=lambda device: device.id)
    if any(device.process_index != jax.process_index() for device in devices):
        raise ValueError(
            "A model must lie on devices of this process to decode, and lies on those "
            "of others too. Pass its parameters through "
            "t2t_jax.distributed.gather.gather_to_local_devices first."
        )
    return Mesh(np.asarray(devices), (_AXIS,), axis_types=(AxisType.Auto,))


def abstract_key(tree: PyTree) -> Hashable:
    """Tells what of a model decides about the programs that it needs.

    Returns:
      Its structure, and the shapes, dtypes and places of its arrays.

    Example:
      >>> abstract_key({"kernel": np.ones(7)}) == abstract_key({"kernel": np.zeros(7)})
      True
    """
    leaves, structure = jax.tree.flatten(tree)
    arrays = tuple((jax.typeof(x), getattr(x, "sharding", None)) for x in leaves)
    return structure, arrays


def shard_rows(rows: Array, mesh: Mesh) -> jax.Array:
    """Gives each device its part of the rows.

    Args:
      rows: [B, ...]; B must be a multiple of the devices. On a CPU the result may share
        its memory: do not write to it afterwards.
      mesh: from `devices_of`.

    Returns:
      [devices, B / devices, ...], each part on its device.

    Raises:
      UserError: the rows cannot be shared evenly.

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
    placed: jax.Array = jax.device_put(parts, NamedSharding(mesh, PartitionSpec(_AXIS)))
    return placed


def per_device(
    function: Callable[[PyTree, PyTree], PyTree], mesh: Mesh
) -> Callable[[PyTree, PyTree], PyTree]:
    """Makes every device run `function` by itself. To be called under `jax.jit`.

    Args:
      function: `(shared, part) -> result`, on arrays without the axis of devices.
      mesh: from `devices_of`.

    Returns:
      `(shared, parts) -> results`: `shared` comes whole to every device, and the leaves
      of `parts` and of `results` are [devices, ...], each part on its device.

    Example:
      >>> mesh = devices_of(())
      >>> double = per_device(lambda factor, part: factor * part, mesh)
      >>> jax.jit(double)(2, shard_rows(np.array([3, 5]), mesh)).tolist()
      [[6, 10]]
    """

    def on_one(shared: PyTree, parts: PyTree) -> PyTree:
        result = function(shared, jax.tree.map(lambda leaf: leaf[0], parts))
        return jax.tree.map(lambda leaf: jax.numpy.expand_dims(leaf, 0), result)

    split = PartitionSpec(_AXIS)
    # The check would follow which values differ between devices, to find what was not
    # summed over them. Nothing is here, and it refuses the loops of ordinary models.
    run: Callable[[PyTree, PyTree], PyTree] = jax.shard_map(
        on_one,
        mesh=mesh,
        in_specs=(PartitionSpec(), split),
        out_specs=split,
        check_vma=False,
    )
    return run


def gather_rows(results: Tree) -> Tree:
    """Brings rows to the host, in their order.

    Args:
      results: leaves [devices, B / devices, ...].

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
