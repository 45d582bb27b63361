"""Puts tensor2tensor's tensors, by their names, into a tree of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.layout import (
    Affine,
    Array,
    ParameterTree,
    interleaved_from_halves,
    read_stacks,
)
from t2t_jax.exchange.importing.source import Source
from t2t_jax.types import Params

_IGNORED = re.compile(
    r"(training|OptimizeLoss|losses_avg|train_stats)/|(global_step|beta\d_power)$"
)
"""State of the optimizer, and statistics."""

_FIRST_KERNEL = "encoder/layer_0/self_attention/multihead_attention/q/kernel"
_NORM_SCOPES = ("layer_prepostprocess", "layer_postprocess", "layer_prepostprocess_1")
_MATRIX = re.compile(r"(?:.*/)?symbol_modality_(\d{1,9})_\d+/\w+/weights_\d+")
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
        self._source, self._config = source, config
        self._d_model, self._d_ff = config["d_model"], config["d_ff"]
        order = interleaved_from_halves(self._d_model)
        self._tree = ParameterTree(num_heads=config["num_heads"], order=order)
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
        names = ("self_attention", "encdec_attention")
        norm = f"{self._body}{{stack}}"
        read_stacks(self, self._config, attentions=names, final_norm=norm)

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

    def add_layer(
        self, stack: str, number: int, *, attentions: Mapping[str, str]
    ) -> None:
        """Adds a layer."""
        ours = f"{stack}/layer_{number}"
        theirs = f"{self._body}{stack}/layer_{number}"
        heads, d_model = self._config["num_heads"], self._d_model
        keys, values = heads * self._config["d_k"], heads * self._config["d_v"]
        for name, scope in attentions.items():
            prefix = f"{theirs}/{scope}/multihead_attention"
            self._tree.add_attention(
                f"{ours}/{name}",
                query=Affine(self._kernel(f"{prefix}/q", d_model, keys)),
                key=Affine(self._kernel(f"{prefix}/k", d_model, keys)),
                value=Affine(self._kernel(f"{prefix}/v", d_model, values)),
                output=Affine(
                    self._kernel(f"{prefix}/output_transform", values, d_model)
                ),
            )
            self.add_norm(f"{ours}/{name}_norm", f"{theirs}/{scope}")
        prefix = f"{theirs}/ffn"
        self._tree.add_feed_forward(
            f"{ours}/feed_forward",
            w1=self._kernel(f"{prefix}/conv1", d_model, self._d_ff),
            b1=self._source.take(f"{prefix}/conv1/bias", self._d_ff),
            w2=self._kernel(f"{prefix}/conv2", self._d_ff, d_model),
            b2=self._source.take(f"{prefix}/conv2/bias", d_model),
        )
        self.add_norm(f"{ours}/feed_forward_norm", prefix)

    def _kernel(self, prefix: str, inputs: int, outputs: int) -> Array:
        return self._source.take(f"{prefix}/kernel", inputs, outputs)

    def add_norm(self, ours: str, theirs: str) -> None:
        """Adds a layer normalization."""
        scopes = [f"{theirs}/{scope}/layer_norm/layer_norm" for scope in _NORM_SCOPES]
        found = [one for one in scopes if f"{one}_scale" in self._source]
        prefix = (*found, scopes[0])[0]
        self._tree.add_norm(
            ours,
            scale=self._source.take(f"{prefix}_scale", self._d_model),
            bias=self._source.take(f"{prefix}_bias", self._d_model),
        )
