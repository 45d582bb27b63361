"""Where each array lives: a table from parameter path to PartitionSpec.

The model knows nothing of this. A path is matched by its trailing part, so the
moments of Adam, whose paths end as their parameter's does, lie beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import keystr, tree_map_with_path

from t2t_jax.parallelism.mesh import DATA
from t2t_jax.types import PyTree

Rules = Sequence[tuple[str, PartitionSpec]]

REPLICATED: Rules = ((r".*", PartitionSpec()),)
"""Data parallelism: every device holds every parameter."""


def path_of(keys: tuple[object, ...]) -> str:
    """Joins a pytree path as checkpoints and rules spell it: `encoder/layer_0/…`."""
    return keystr(keys, simple=True, separator="/")


def shardings_for(tree: PyTree, mesh: Mesh, *, rules: Rules = REPLICATED) -> PyTree:
    """Maps every leaf of `tree` to its NamedSharding.

    Args:
      tree: arrays, or their shapes (`jax.eval_shape`).
      mesh: the devices.
      rules: (pattern, spec) pairs; the first pattern that matches the end of a
        leaf's path decides. Scalars (counters) are always replicated.

    Raises:
      ValueError: no rule matches a leaf.
    """

    def place(keys: tuple[object, ...], leaf: jax.Array) -> NamedSharding:
        if leaf.ndim == 0:
            return NamedSharding(mesh, PartitionSpec())
        path = path_of(keys)
        for pattern, spec in rules:
            if re.search(f"(?:{pattern})$", path):
                return NamedSharding(mesh, spec)
        raise ValueError(
            f"Every parameter needs a sharding rule, and none matches {path}. "
            "Add a pattern for it to the table."
        )

    return tree_map_with_path(place, tree)


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Splits axis B of a batch over the devices."""
    return NamedSharding(mesh, PartitionSpec(DATA))


def replicated(mesh: Mesh) -> NamedSharding:
    """Holds the same array on every device."""
    return NamedSharding(mesh, PartitionSpec())
