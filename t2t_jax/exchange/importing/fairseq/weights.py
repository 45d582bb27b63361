"""Puts fairseq's tensors, by their names of any age, into a tree of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.layout import (
    Affine,
    Array,
    ParameterTree,
    interleaved_from_halves,
    our_ids,
    read_stacks,
)
from t2t_jax.exchange.importing.source import Source
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
    names = ("self_attn", "encoder_attn")
    read_stacks(reader, config, attentions=names, final_norm="{stack}.layer_norm")
    if config.get("positions") == "learned":
        reader.add_positions()
    reader.add_matrices(sizes)
    source.check_all_taken(ignored=_IGNORED)
    return tree.params


class _Reader:
    """Reads fairseq's tensors into a tree; linear maps are [outputs, inputs]."""

    def __init__(self, source: Source, tree: ParameterTree, config: Mapping[str, Any]):
        self._source, self._tree, self._config = source, tree, config
        self._d_model, self._d_ff = config["d_model"], config["d_ff"]

    def add_layer(
        self, stack: str, number: int, *, attentions: Mapping[str, str]
    ) -> None:
        """Adds a layer."""
        ours, theirs = f"{stack}/layer_{number}", f"{stack}.layers.{number}"
        # Before the norms had names they were a list, in the order of their use.
        is_list = f"{theirs}.layer_norms.0.weight" in self._source
        for index, (name, short) in enumerate(attentions.items()):
            query, key, value = self._projections(f"{theirs}.{short}")
            self._tree.add_attention(
                f"{ours}/{name}",
                query=query,
                key=key,
                value=value,
                output=Affine(*self._linear(f"{theirs}.{short}.out_proj")),
            )
            norm = f"layer_norms.{index}" if is_list else f"{short}_layer_norm"
            self.add_norm(f"{ours}/{name}_norm", f"{theirs}.{norm}")
        norm = f"layer_norms.{len(attentions)}" if is_list else "final_layer_norm"
        self.add_norm(f"{ours}/feed_forward_norm", f"{theirs}.{norm}")
        w1, b1 = self._linear(f"{theirs}.fc1", outputs=self._d_ff)
        w2, b2 = self._linear(f"{theirs}.fc2", inputs=self._d_ff)
        self._tree.add_feed_forward(f"{ours}/feed_forward", w1=w1, b1=b1, w2=w2, b2=b2)

    def add_norm(self, ours: str, theirs: str) -> None:
        """Adds a layer normalization."""
        self._tree.add_norm(
            ours,
            scale=self._source.take(f"{theirs}.weight", self._d_model),
            bias=self._source.take(f"{theirs}.bias", self._d_model),
        )

    def add_positions(self) -> None:
        """Adds the learned positions, which fairseq does not scale."""
        scale = np.float32(1)
        if self._config["scale_embeddings"]:
            scale /= np.sqrt(np.float32(self._d_model))
        rows = self._config["max_positions"] + self._config["first_position"]
        for stack in _STACKS:
            name = f"{stack}.embed_positions.weight"
            size = self._source.shape(name)[:1]
            table = self._source.take(name, *size, self._d_model)
            self._tree.add_table(f"{stack}/positions/learned", table[:rows] * scale)

    def add_matrices(self, sizes: tuple[int, int]) -> None:
        """Adds the vocabulary matrices."""
        tables = [
            self._matrix(f"{stack}.embed_tokens.weight", size)
            for stack, size in zip(_STACKS, sizes, strict=True)
        ]
        tying, target_size = self._config["tying"], sizes[1]
        # A matrix that is shared may be there once for each of its uses.
        outputs = [
            self._matrix(name, target_size)
            for name in ("decoder.output_projection.weight", "decoder.embed_out")
            if name in self._source
        ]
        shared = {"all": [*tables, *outputs], "decoder": [tables[1], *outputs]}
        for other in shared.get(tying, outputs)[1:]:
            if not np.array_equal(other, shared.get(tying, outputs)[0]):
                raise DataError(
                    f"{self._source.name}: its matrices of embeddings and logits must "
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
                self._source.shape("decoder.output_projection.weight")
            self._add_table("pre_softmax", outputs[0])

    def _add_table(self, path: str, rows: Array) -> None:
        ids = our_ids(len(rows), pad=1, bos=0, eos=2, unk=3)
        self._tree.add_table(path, rows, ids=ids)

    def _matrix(self, name: str, size: int) -> Array:
        rows = (*self._source.shape(name), 0)[0]
        if rows != size:
            raise DataError(
                f"{self._source.name}: {name} has {rows:,} rows, and the "
                f"dictionary {size:,} pieces, the four special ones included. Pass "
                "the dictionaries of this model."
            )
        return self._source.take(name, size, self._d_model)

    def _projections(self, prefix: str) -> list[Affine]:
        """Returns those of queries, keys and values, stacked in older checkpoints."""
        if f"{prefix}.in_proj_weight" not in self._source:
            return [Affine(*self._linear(f"{prefix}.{name}_proj")) for name in "qkv"]
        d_model = self._d_model
        weights = self._source.take(f"{prefix}.in_proj_weight", 3 * d_model, d_model)
        biases = self._source.take(f"{prefix}.in_proj_bias", 3 * d_model)
        pairs = zip(np.split(weights, 3), np.split(biases, 3), strict=True)
        return [Affine(weight.T, bias) for weight, bias in pairs]

    def _linear(
        self, prefix: str, *, inputs: int = 0, outputs: int = 0
    ) -> tuple[Array, Array]:
        """Returns a matrix [inputs, outputs] and a bias; 0 stands for d_model."""
        inputs, outputs = inputs or self._d_model, outputs or self._d_model
        weight = self._source.take(f"{prefix}.weight", outputs, inputs)
        return weight.T, self._source.take(f"{prefix}.bias", outputs)
