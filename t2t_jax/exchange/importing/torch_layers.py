"""Reads layers of fairseq and of Hugging Face, whose tensors have the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_jax.exchange.importing.layout import Affine, Array, ParameterTree
from t2t_jax.exchange.importing.source import Source

ATTENTIONS = ("self_attn", "encoder_attn")
"""Names of self-attention and of cross-attention."""


class TorchLayers:
    """Reads layers into a tree; linear maps are [outputs, inputs].

    Args:
      config: values of `config.model` by key.
      prefix: of the names of all tensors.
    """

    def __init__(
        self,
        source: Source,
        tree: ParameterTree,
        config: Mapping[str, Any],
        *,
        prefix: str = "",
    ):
        self.source, self.tree, self.config = source, tree, config
        self.d_model, self._prefix = config["d_model"], prefix

    def add_layer(
        self, stack: str, number: int, *, attentions: Mapping[str, str]
    ) -> None:
        """Adds a layer."""
        ours = f"{stack}/layer_{number}"
        theirs = f"{self._prefix}{stack}.layers.{number}"
        # Before the norms had names they were a list, in the order of their use.
        is_list = f"{theirs}.layer_norms.0.weight" in self.source
        for index, (name, short) in enumerate(attentions.items()):
            parts = [
                part if self.config["attention_biases"] else Affine(part.kernel)
                for part in self._attention(f"{theirs}.{short}")
            ]
            names = ("query", "key", "value", "output")
            self.tree.add_attention(
                f"{ours}/{name}", **dict(zip(names, parts, strict=True))
            )
            norm = f"layer_norms.{index}" if is_list else f"{short}_layer_norm"
            self.add_norm(f"{ours}/{name}_norm", f"{theirs}.{norm}")
        norm = f"layer_norms.{len(attentions)}" if is_list else "final_layer_norm"
        self.add_norm(f"{ours}/feed_forward_norm", f"{theirs}.{norm}")
        d_ff = self.config["d_ff"]
        w1, b1 = self._linear(f"{theirs}.fc1", self.d_model, d_ff)
        w2, b2 = self._linear(f"{theirs}.fc2", d_ff, self.d_model)
        self.tree.add_feed_forward(f"{ours}/feed_forward", w1=w1, b1=b1, w2=w2, b2=b2)

    def add_norm(self, ours: str, theirs: str) -> None:
        """Adds a layer normalization."""
        scale, bias = (
            self.source.take(f"{theirs}.{name}", self.d_model)
            for name in ("weight", "bias")
        )
        self.tree.add_norm(ours, scale=scale, bias=bias)

    def _attention(self, prefix: str) -> list[Affine]:
        """Returns four projections; the first three are stacked in old checkpoints."""
        d_model = self.d_model
        output = Affine(*self._linear(f"{prefix}.out_proj", d_model, d_model))
        if f"{prefix}.in_proj_weight" not in self.source:
            linear = (f"{prefix}.{name}_proj" for name in "qkv")
            return [
                *(Affine(*self._linear(one, d_model, d_model)) for one in linear),
                output,
            ]
        weights = self.source.take(f"{prefix}.in_proj_weight", 3 * d_model, d_model)
        biases = self.source.take(f"{prefix}.in_proj_bias", 3 * d_model)
        pairs = zip(np.split(weights, 3), np.split(biases, 3), strict=True)
        return [*(Affine(weight.T, bias) for weight, bias in pairs), output]

    def _linear(self, prefix: str, inputs: int, outputs: int) -> tuple[Array, Array]:
        weight = self.source.take(f"{prefix}.weight", outputs, inputs)
        return weight.T, self.source.take(f"{prefix}.bias", outputs)
