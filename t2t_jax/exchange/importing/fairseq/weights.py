"""Puts fairseq's tensors, by their names of any age, into a tree of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.layout import (
    Array,
    ParameterTree,
    interleaved_from_halves,
    our_ids,
    read_stacks,
)
from t2t_jax.exchange.importing.source import Source
from t2t_jax.exchange.importing.torch_layers import ATTENTIONS, TorchLayers
from t2t_jax.types import Params

_STACKS = ("encoder", "decoder")

_IGNORED = tuple(
    f"{stack}.{name}"
    for stack in _STACKS
    for name in ("version", "embed_positions._float_tensor", "embed_positions.weights")
)
"""Tensors without an effect on the outputs; sinusoids are computed."""


def read_weights(
    source: Source, config: Mapping[str, Any], *, sizes: tuple[int, int]
) -> Params:
    """Reads the parameters of a `Transformer`.

    Args:
      config: values of `config.model` by key.
      sizes: of the vocabularies of source and target.

    Raises:
      DataError: a tensor is missing, left over, or of another shape.
    """
    order = interleaved_from_halves(config["d_model"])
    tree = ParameterTree(num_heads=config["num_heads"], order=order)
    reader = _Reader(source, tree, config)
    read_stacks(reader, config, attentions=ATTENTIONS, final_norm="{stack}.layer_norm")
    if config.get("positions") == "learned":
        reader.add_positions()
    reader.add_matrices(sizes)
    source.check_all_taken(ignored=_IGNORED)
    return tree.params


class _Reader(TorchLayers):
    """Reads all tensors into a tree."""

    def add_positions(self) -> None:
        """Adds the learned positions, which fairseq does not scale."""
        scale = np.float32(1)
        if self.config["scale_embeddings"]:
            scale /= np.sqrt(np.float32(self.d_model))
        rows = self.config["max_positions"] + self.config["first_position"]
        for stack in _STACKS:
            name = f"{stack}.embed_positions.weight"
            size = self.source.shape(name)[:1]
            table = self.source.take(name, *size, self.d_model)
            self.tree.add_table(f"{stack}/positions/learned", table[:rows] * scale)

    def add_matrices(self, sizes: tuple[int, int]) -> None:
        """Adds the vocabulary matrices."""
        tables = [
            self._matrix(f"{stack}.embed_tokens.weight", size)
            for stack, size in zip(_STACKS, sizes, strict=True)
        ]
        tying, target_size = self.config["tying"], sizes[1]
        # A matrix that is shared may be there once for each of its uses.
        outputs = [
            self._matrix(name, target_size)
            for name in ("decoder.output_projection.weight", "decoder.embed_out")
            if name in self.source
        ]
        shared = {"all": [*tables, *outputs], "decoder": [tables[1], *outputs]}
        for other in shared.get(tying, outputs)[1:]:
            if not np.array_equal(other, shared.get(tying, outputs)[0]):
                raise DataError(
                    f"{self.source.name}: its matrices of embeddings and logits must "
                    f"be equal by its arguments (tying={tying}), and differ. Pass "
                    "another checkpoint."
                )
        if tying == "all":
            self._add_table("embedding", tables[0])
            return
        self._add_table("source_embedding", tables[0])
        self._add_table("target_embedding", tables[1])
        if tying == "none":
            if not outputs:
                self.source.shape("decoder.output_projection.weight")
            self._add_table("pre_softmax", outputs[0])

    def _add_table(self, path: str, rows: Array) -> None:
        ids = our_ids(len(rows), pad=1, bos=0, eos=2, unk=3)
        self.tree.add_table(path, rows, ids=ids)

    def _matrix(self, name: str, size: int) -> Array:
        rows = (*self.source.shape(name), 0)[0]
        if rows != size:
            raise DataError(
                f"{self.source.name}: {name} has {rows:,} rows, and the "
                f"dictionary {size:,} pieces, the four special ones included. Pass "
                "the dictionaries of this model."
            )
        return self.source.take(name, size, self.d_model)
