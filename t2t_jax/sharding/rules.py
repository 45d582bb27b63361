"""Where each array lives: a table from parameter path to what its axes are.

The model knows nothing of this. A path is matched by its trailing part, so the moments
of Adam, whose paths end as their parameter's does, lie beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import keystr, tree_map_with_path

from t2t_jax.errors import ConfigError
from t2t_jax.sharding.mesh import ROW_AXES
from t2t_jax.types import Batch, PyTree


def make_global_batch(batch: Batch, mesh: Mesh) -> Batch:
    """Splits the rows of a batch over the row axes of `mesh`.

    Args:
      batch: NumPy arrays with this process's part of the rows,
      `mesh.local_batch_shard`; on a
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


Rules = Sequence[tuple[str, tuple[str, ...]]]
"""(pattern of a path, what each axis is: a name of `AXES_OF_PARAMETERS`, or "")."""


class ParameterAxis(NamedTuple):
    """An axis of parameters that devices may split.

    Attributes:
      mesh_axes: the axes of the mesh over which it is split.
      key: of the configuration, what decides how long it is.
      where_possible: whether it is split over those alone by which it divides, and by
        which no axis before it is.
    """

    mesh_axes: tuple[str, ...]
    key: str
    where_possible: bool = False


AXES_OF_PARAMETERS = {
    "vocabulary": ParameterAxis(("fsdp", "tensor"), "vocabulary.size", True),
    # A table split by its width is copied whole at each lookup: only what the
    # vocabulary, which nobody chooses to divide, leaves over.
    "width": ParameterAxis(("fsdp",), "model.d_model", True),
    "heads": ParameterAxis(("tensor",), "model.num_heads"),
    "d_ff": ParameterAxis(("tensor",), "model.d_ff"),
    "d_model": ParameterAxis(("fsdp",), "model.d_model"),
    "d_hidden": ParameterAxis(("fsdp",), "rnn.d_hidden"),
}

PARAMETERS: Rules = (
    # The layers of the recurrent baseline (attentive_layer, cell, readout) are split
    # over fsdp only.
    (r"(embedding|pre_softmax)/table", ("vocabulary", "width")),
    (r"positions/learned/table", ("", "width")),
    (r"attentive_layer/attention/(query|key)/kernel", ("d_hidden", "")),
    (r"attention/(query|key|value)/kernel", ("d_model", "heads", "")),
    (r"attention/output/kernel", ("heads", "", "d_model")),
    (r"feed_forward/inner/kernel", ("d_model", "d_ff")),
    (r"feed_forward/inner/bias", ("d_ff",)),
    (r"feed_forward/outer/kernel", ("d_ff", "d_model")),
    (r"cell/\w+/kernel", ("", "d_hidden")),
    (r"readout/kernel", ("", "d_model")),
    # Vectors weigh nothing, and a split one would split what it is added to.
    (r"(bias|scale|score)", ("",)),
)
"""The parameters of both models. On a mesh whose fsdp and tensor are 1 nothing is
split."""

REPLICATED: Rules = ((r".*", ()),)
"""Every device holds every parameter."""


def path_of(keys: tuple[object, ...]) -> str:
    """Joins a pytree path as checkpoints and rules spell it: `encoder/layer_0/…`."""
    return keystr(keys, simple=True, separator="/")


def shardings_for(
    tree: PyTree, mesh: Mesh, *, rules: Rules = PARAMETERS, over_data: bool = False
) -> PyTree:
    """Maps every leaf of `tree` to its NamedSharding.

    Args:
      tree: arrays, or their shapes (`jax.eval_shape`).
      rules: the first pattern that matches the end of a leaf's path decides. Scalars
        (counters) are always replicated.
      over_data: whether a leaf is split over the axis `data` as well, along the first
        of its axes that divides.

    Raises:
      ValueError: no rule matches a leaf.
      ConfigError: an axis does not divide by the devices that would split it.
    """

    def place(keys: tuple[object, ...], leaf: jax.Array) -> NamedSharding:
        if leaf.ndim == 0:
            return NamedSharding(mesh, PartitionSpec())
        path = path_of(keys)
        names = _axes_of(path, leaf.ndim, rules=rules)
        split: list[tuple[str, ...]] = []
        for name, size in zip(names, leaf.shape, strict=True):
            taken = [axis for axes in split for axis in axes]
            split.append(_split(name, size, mesh=mesh, taken=taken, path=path))
        if over_data:
            split = _split_over_data(split, leaf.shape, mesh=mesh)
        return NamedSharding(mesh, _spec(split))

    return tree_map_with_path(place, tree)


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Splits axis B of a batch over the devices."""
    return NamedSharding(mesh, PartitionSpec(ROW_AXES))


def replicated(mesh: Mesh) -> NamedSharding:
    """Holds the same array on every device."""
    return NamedSharding(mesh, PartitionSpec())


def _axes_of(path: str, num_axes: int, *, rules: Rules) -> tuple[str, ...]:
    for pattern, names in rules:
        if re.search(f"(?:{pattern})$", path):
            return (*names, *[""] * (num_axes - len(names)))
    raise ValueError(
        f"Every parameter needs a sharding rule, and none matches {path}. "
        "Add a pattern for it to the table."
    )


def _split(
    name: str, size: int, *, mesh: Mesh, taken: Sequence[str], path: str
) -> tuple[str, ...]:
    """Chooses the mesh axes that split one axis of a parameter."""
    if not name:
        return ()
    axis = AXES_OF_PARAMETERS[name]
    used = tuple(a for a in axis.mesh_axes if mesh.shape[a] > 1 and a not in taken)
    if axis.where_possible:
        return max(
            _dividing(used, size, mesh=mesh), key=lambda axes: _parts(axes, mesh)
        )
    parts = _parts(used, mesh)
    if size % parts:
        raise ConfigError(
            f"{path} has an axis of {size}, from config.{axis.key}, that must be "
            f"divisible by mesh.{used[0]}={parts}. Change config.mesh.{used[0]} or "
            f"config.{axis.key}."
        )
    return used


def _dividing(
    axes: tuple[str, ...], size: int, *, mesh: Mesh
) -> Iterator[tuple[str, ...]]:
    """Yields the choices among the axes of a mesh by which a size divides."""
    for number in range(len(axes) + 1):
        for chosen in combinations(axes, number):
            if size % _parts(chosen, mesh) == 0:
                yield chosen


def _parts(axes: Sequence[str], mesh: Mesh) -> int:
    return math.prod(mesh.shape[axis] for axis in axes)


def _split_over_data(
    split: list[tuple[str, ...]], shape: tuple[int, ...], *, mesh: Mesh
) -> list[tuple[str, ...]]:
    data = mesh.shape["data"]
    for number, (axes, size) in enumerate(zip(split, shape, strict=True)):
        parts = _parts(axes, mesh)
        if data > 1 and size % (parts * data) == 0:
            return [*split[:number], (*axes, "data"), *split[number + 1 :]]
    return split


def _spec(split: list[tuple[str, ...]]) -> PartitionSpec:
    """Spells which mesh axes split each axis, without the unsplit ones at the end."""
    while split and not split[-1]:
        split = split[:-1]
    return PartitionSpec(
        *(None if not axes else axes[0] if len(axes) == 1 else axes for axes in split)
    )
