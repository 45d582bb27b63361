"""Puts tensor2tensor's tensors, by their names, into a tree of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.layout import (
    Array,
    ParameterTree,
    Source,
)
from t2t_jax.types import Params

_IGNORED = re.compile(
    r"(training|OptimizeLoss|losses_avg|train_stats)/|(global_step|beta\d_power)$"
)
"""State of the optimizer, and statistics."""

_FIRST_KERNEL = "encoder/layer_0/self_attention/multihead_attention/q/kernel"
_NORM_SCOPES = ("layer_prepostprocess", "layer_postprocess", "layer_prepostprocess_1")
_MATRIX = re.compile(r"(?:.*/)?symbol_modality_(\d{1,9})_\d+/\w+/weights_\d+")
_NORMS = {
    "self_attention_norm": "self_attention",
    "cross_attention_norm": "encdec_attention",
    "feed_forward_norm": "ffn",
}
_PARTS = {
    **{
        f"{ours}/{name}": f"{_NORMS[f'{ours}_norm']}/multihead_attention/{theirs}"
        for ours in ("self_attention", "cross_attention")
        for name, theirs in (
            *(("query", "q"), ("key", "k"), ("value", "v")),
            ("output", "output_transform"),
        )
    },
    "feed_forward/inner": "ffn/conv1",
    "feed_forward/outer": "ffn/conv2",
}
"""Parts of a layer of ours, and their names."""

TARGET_SPACES = 32
"""Rows of the embedding of target spaces."""


def model_tensors(
    tensors: Mapping[str, npt.NDArray[Any]],
) -> dict[str, npt.NDArray[Any]]:
    """Returns the tensors of the model alone."""
    return {name: one for name, one in tensors.items() if not _IGNORED.match(name)}


def matrix_sizes(names: Iterable[str]) -> set[int]:
    """Returns the numbers of rows of the vocabulary matrices, from their names."""
    return {int(found[1]) for name in names if (found := _MATRIX.fullmatch(name))}


def trained_target_spaces(tensors: Mapping[str, npt.NDArray[Any]]) -> list[int]:
    """Returns which rows of the embedding of target spaces got a gradient.

    The rows of the others are as they were initialized, and those of the optimizer's
    state are zero.
    """
    rows: set[int] = set()
    for name, tensor in tensors.items():
        if "/target_space_embedding/kernel/" in name and tensor.ndim == 2:
            rows.update(np.flatnonzero(tensor.any(axis=1)).tolist())
    return sorted(rows)


class T2TReader:
    """Reads the tensors of a model into a tree.

    Args:
      config: values of `config.model` by key.

    Raises:
      DataError: not a Transformer of tensor2tensor.
    """

    def __init__(self, source: Source, config: Mapping[str, Any]):
        self._source, self._d_model = source, config["d_model"]
        self._tree = ParameterTree(config)
        roots = [
            n.removesuffix(_FIRST_KERNEL) for n in source if n.endswith(_FIRST_KERNEL)
        ]
        if len(roots) != 1:
            raise DataError(
                f"{source.name} must have one tensor …/{_FIRST_KERNEL}, and has "
                f"{len(roots)}. Pass a Transformer of tensor2tensor; those of its "
                "first versions have other names, and are not supported."
            )
        self._body = roots[0]
        self._root = self._body.removesuffix("body/")

    def read_stacks(self) -> None:
        """Reads both stacks."""
        self._tree.add_stacks(self._take)

    def read_matrix(self, size: int, names: Sequence[str]) -> tuple[str, Array]:
        """Reads a vocabulary matrix of `size` rows, which may be in several shards.

        Args:
          names: of its scope, the first that the model has.

        Returns:
          The scope, and the matrix [V, D].
        """
        modality = f"{self._root}symbol_modality_{size}_{self._d_model}"
        scopes = [f"{modality}/{name}" for name in names]
        scope = next((one for one in scopes if f"{one}/weights_0" in self._source), "")
        if not scope:
            raise DataError(
                f"{self._source.name} has no tensor {scopes[0]}/weights_0, of "
                f"{size:,} subwords, but matrices of "
                f"{sorted(matrix_sizes(self._source))}. Pass the vocabularies of this "
                "model."
            )
        shards = sum(name.startswith(f"{scope}/weights_") for name in self._source)
        rows = [size // shards + (n < size % shards) for n in range(shards)]
        parts = [
            self._source.take(f"{scope}/weights_{number}", length, self._d_model)
            for number, length in enumerate(rows)
        ]
        return scope, np.concatenate(parts)

    def read_target_space(self, space: int) -> Array:
        """Reads the vector [D] that is added to every input of the encoder."""
        name = f"{self._body}target_space_embedding/kernel"
        spaces = self._source.take(name, TARGET_SPACES, self._d_model)
        vector: Array = spaces[space]
        return vector

    @property
    def has_target_spaces(self) -> bool:
        """Whether the model has an embedding of target spaces."""
        return f"{self._body}target_space_embedding/kernel" in self._source

    def finish(
        self,
        tables: Mapping[str, Array],
        ids: Mapping[str, Sequence[int | None]],
        *,
        output: str,
    ) -> Params:
        """Adds the vocabulary matrices, and returns the tree.

        Args:
          tables: [V, D] by the path of the parameter.
          ids: the foreign id of each row, by the same.
          output: the path of the matrix of the logits, whose bias gives no probability
            to ids that tensor2tensor does not have.
        """
        for path, rows in tables.items():
            self._tree.add_table(path, rows, ids=ids[path])
        zeros = np.zeros(len(tables[output]), np.float32)
        self._tree.add_output_bias(output, zeros, ids=ids[output])
        self._source.check_all_taken()
        return self._tree.params

    def _take(self, path: str, kind: str, *shape: int) -> Array:
        stack, layer, *part = path.split("/")
        if not path.endswith("_norm"):
            scope = f"{layer}/{_PARTS['/'.join(part)]}"
            return self._source.take(f"{self._body}{stack}/{scope}/{kind}", *shape)
        within = f"{stack}/{layer}/{_NORMS[part[0]]}" if part else stack
        scopes = [
            f"{self._body}{within}/{scope}/layer_norm/layer_norm"
            for scope in _NORM_SCOPES
        ]
        known = [one for one in scopes if f"{one}_scale" in self._source]
        return self._source.take(f"{(*known, scopes[0])[0]}_{kind}", *shape)
