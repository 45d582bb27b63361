"""Shardings of parameters and batches: a table from parameter path to logical axes.

The model is independent of this table. Patterns match the end of a path, so that Adam's
moments get the sharding of their parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import keystr, tree_flatten_with_path, tree_map_with_path

from t2t_jax.devices.sharding.mesh import ROW_AXES
from t2t_jax.errors import ConfigError
from t2t_jax.types import Batch, PyTree


def make_global_batch(batch: Batch, mesh: Mesh) -> Batch:
    """Splits the rows of a batch over the row axes of `mesh`.

    Args:
      batch: NumPy arrays with this process's rows (`mesh.local_batch_shard`), all rows
        with a single process. Do not modify them afterwards: on a CPU a device array
        may share their memory.

    Returns:
      The global batch, as sharded device arrays.

    Raises:
      ValueError: the rows are not divisible by the row shards of this process.
    """
    sharding = batch_sharding(mesh)
    if jax.process_count() == 1:  # One transfer for all arrays.
        global_batch: Batch = jax.device_put(batch, sharding)
        return global_batch
    return Batch._make(
        jax.make_array_from_process_local_data(sharding, rows) for rows in batch
    )


Rules = Sequence[tuple[str, tuple[str, ...]]]
"""Pairs of a path pattern and a name per axis: of `LOGICAL_AXES`, or "" for none."""


class ParameterAxis(NamedTuple):
    """A logical axis of parameters that can be sharded.

    Attributes:
      mesh_axes: the mesh axes over which it is split.
      where_possible: whether to use only those mesh axes that divide it and are not
        used by an earlier axis of the array, instead of raising an error.
    """

    mesh_axes: tuple[str, ...]
    key: str
    where_possible: bool = False


LOGICAL_AXES = {
    "vocabulary": ParameterAxis(("fsdp", "tensor"), "vocabulary.size", True),
    # Each lookup in a table split by its width gathers the full table, so only mesh
    # axes that do not divide the vocabulary size are used.
    "width": ParameterAxis(("fsdp",), "model.d_model", True),
    "heads": ParameterAxis(("tensor",), "model.num_heads"),
    "d_ff": ParameterAxis(("tensor",), "model.d_ff"),
    "d_model": ParameterAxis(("fsdp",), "model.d_model"),
    "d_hidden": ParameterAxis(("fsdp",), "rnn.d_hidden"),
}

PARAMETERS: Rules = (
    # Of the state of Adafactor: vectors, and single zeros in place of them.
    (r"\d+/(v_row|v_col)/.+", ("",)),
    # The recurrent baseline (attentive_layer, cell, readout) is split over fsdp only.
    (r"(embedding|pre_softmax)/table", ("vocabulary", "width")),
    (r"positions/learned/table", ("", "width")),
    (r"attentive_layer/attention/(query|key)/kernel", ("d_hidden", "")),
    (r"attention/(query|key|value)/kernel", ("d_model", "heads", "")),
    (r"attention/(query|key|value)/bias", ("heads", "")),
    (r"attention/output/kernel", ("heads", "", "d_model")),
    (r"feed_forward/(gate|inner)/kernel", ("d_model", "d_ff")),
    (r"feed_forward/inner/bias", ("d_ff",)),
    (r"feed_forward/outer/kernel", ("d_ff", "d_model")),
    (r"cell/\w+/kernel", ("", "d_hidden")),
    (r"readout/kernel", ("", "d_model")),
    # Vectors are small, and a sharded one would reshard the activations.
    (r"(bias|scale|score)", ("",)),
    # Coefficients in the state of Muon.
    (r"ns_coeffs", ("",)),
    # Zeros in the state of Adafactor, in place of moments that are factored.
    (r"\d+/v/.+", ("",)),
)
"""The rules of both models; with fsdp=1 and tensor=1 all parameters are replicated."""


def path_of(keys: tuple[object, ...]) -> str:
    """Formats a pytree path as in checkpoints and rules: `encoder/layer_0/…`."""
    return keystr(keys, simple=True, separator="/")


def leaves_by_path(tree: PyTree) -> dict[str, Any]:
    """Returns the leaves of a tree by `path_of`."""
    leaves, _ = tree_flatten_with_path(tree)
    return {path_of(path): leaf for path, leaf in leaves}


def dtype_shapes(tree: PyTree) -> dict[str, str]:
    """Returns dtype and shape of each array of a tree, by path."""
    return {path: dtype_shape(leaf) for path, leaf in leaves_by_path(tree).items()}


def dtype_shape(leaf: Any) -> str:
    """Returns dtype and shape of an array as the first part of its checksum text.

    Example:
      >>> dtype_shape(jax.ShapeDtypeStruct((2, 3), "int32"))
      'int32[2,3]'
    """
    return f"{leaf.dtype.name}[{','.join(map(str, leaf.shape))}]"


_WHOLE = "the array"  # where a tree is one array, whose path is ""


def describe_differences(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Describes how a map of path to text differs from another one; "" if it does not.

    Example:
      >>> expected = {"a": "int8[2]", "b": "int8[2]", "c": "int8[]"}
      >>> describe_differences(expected, {"a": "int8[3]", "c": "int8[]", "d": "int8[]"})
      '1 missing (b); 1 not expected (d); 1 different (a is int8[3], not int8[2])'
    """
    kinds = {
        "missing": [path or _WHOLE for path in expected if path not in found],
        "not expected": [path or _WHOLE for path in found if path not in expected],
        "different": [
            f"{path or _WHOLE} is {found[path]}, not {text}"
            for path, text in expected.items()
            if found.get(path, text) != text
        ],
    }
    return "; ".join(
        f"{len(names)} {kind} ({', '.join(names[:3])}{', …' * (len(names) > 3)})"
        for kind, names in kinds.items()
        if names
    )


def shardings_for(
    tree: PyTree, mesh: Mesh, *, rules: Rules = PARAMETERS, over_data: bool = False
) -> PyTree:
    """Maps every leaf of `tree` to its NamedSharding.

    Args:
      tree: arrays, or their shapes (`jax.eval_shape`).
      rules: the first pattern that matches the end of a leaf's path is used. Scalars
        (counters) are always replicated, and with a mesh of `data` alone all leaves.
      over_data: whether to split each leaf over the mesh axis `data` as well, along its
        first divisible axis.

    Raises:
      ValueError: no rule matches a leaf.
      ConfigError: an axis is not divisible by its mesh axes.
    """
    data = mesh.shape["data"]

    def sharding(keys: tuple[object, ...], leaf: jax.Array) -> NamedSharding:
        path, names = path_of(keys), [""] * leaf.ndim
        if leaf.ndim and mesh.size > data:
            names = _axes_of(path, leaf.ndim, rules=rules)
        split: list[tuple[str, ...]] = []
        for name, size in zip(names, leaf.shape, strict=True):
            used = [axis for axes in split for axis in axes]
            split.append(_split(name, size, mesh=mesh, used=used, path=path))
        parts = [data * _parts(axes, mesh) for axes in split]
        fits = (n for n, size in enumerate(leaf.shape) if size % parts[n] == 0)
        if over_data and data > 1 and (first := next(fits, None)) is not None:
            split[first] += ("data",)
        while split and not split[-1]:  # An axis that is not split need not be named.
            split.pop()
        return NamedSharding(mesh, PartitionSpec(*split))

    return tree_map_with_path(sharding, tree)


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Returns the sharding of a batch: axis B over the row axes of the mesh."""
    return NamedSharding(mesh, PartitionSpec(ROW_AXES))


def replicated(mesh: Mesh) -> NamedSharding:
    """Returns the sharding of an array that every device of the mesh holds."""
    return NamedSharding(mesh, PartitionSpec())


def _axes_of(path: str, num_axes: int, *, rules: Rules) -> list[str]:
    for pattern, names in rules:
        if re.search(f"(?:{pattern})$", path) and len(names) <= num_axes:
            return [*names, *[""] * (num_axes - len(names))]
    raise ValueError(
        f"Every array of {num_axes} axes needs a sharding rule on a mesh that splits "
        f"parameters, and none matches {path}. Use a mesh of data alone, pass "
        "shardings, or add a pattern to t2t_jax.devices.sharding.rules.PARAMETERS."
    )


def _split(
    name: str, size: int, *, mesh: Mesh, used: Sequence[str], path: str
) -> tuple[str, ...]:
    """Returns the mesh axes that split one axis of a parameter."""
    if not name:
        return ()
    axis = LOGICAL_AXES[name]
    axes = tuple(a for a in axis.mesh_axes if mesh.shape[a] > 1 and a not in used)
    if axis.where_possible:
        every = chain.from_iterable(combinations(axes, n) for n in range(len(axes) + 1))
        fitting = (some for some in every if size % _parts(some, mesh) == 0)
        return max(fitting, key=lambda some: _parts(some, mesh))
    parts = _parts(axes, mesh)
    if size % parts:
        raise ConfigError(
            f"{path} has an axis of {size}, from config.{axis.key}, that must be "
            f"divisible by mesh.{axes[0]}={parts}. Change config.mesh.{axes[0]} or "
            f"config.{axis.key}."
        )
    return axes


def _parts(axes: Sequence[str], mesh: Mesh) -> int:
    return math.prod(mesh.shape[axis] for axis in axes)
