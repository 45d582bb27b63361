"""The parameters of a Transformer as the tensors of a Hugging Face MarianMTModel."""

from __future__ import annotations

from typing import TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.exchange.importing.huggingface.trained import (
    POSITION_TABLES,
    position_table,
)
from t2t_jax.exchange.importing.layout import interleaved_from_halves
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import Params

Tensors: TypeAlias = dict[str, npt.NDArray[np.float32]]

_ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}


def to_tensors(params: Params, *, config: TransformerConfig, positions: int) -> Tensors:
    """Returns HF's tensors by name: permuted, transposed, with biases of zero.

    Args:
      params: of a post-norm `Transformer` with sinusoids, d_k = d_v = d_model / h.
      positions: number of sinusoids, where HF would compute others.
    """
    params = jax.tree.map(np.asarray, params)
    writer = _Writer(config.d_model)
    for stack in ("encoder", "decoder"):
        for name, layer in params[stack].items():
            number = name.removeprefix("layer_")
            writer.add_layer(f"model.{stack}.layers.{number}", layer)
    if config.tying == "all":
        output = params["embedding"]
        writer.add_table("model.shared.weight", output)
    else:
        output = params["target_embedding"]
        writer.add_table(
            "model.encoder.embed_tokens.weight", params["source_embedding"]
        )
        writer.add_table("model.decoder.embed_tokens.weight", output)
    if config.tying == "none":
        output = params["pre_softmax"]
        writer.add_table("lm_head.weight", output)
    bias = output.get("bias", np.zeros(len(output["table"]), np.float32))
    writer.add("final_logits_bias", bias[None])
    if has_other_positions(config):
        rates, first = config.position_rates, config.first_position
        for name in POSITION_TABLES:
            table = position_table(positions, config.d_model, rates=rates, first=first)
            writer.add(name, table)
    return writer.tensors


def has_other_positions(config: TransformerConfig) -> bool:
    """Returns whether HF would compute other sinusoids than the model's."""
    return config.position_rates != "paper" or config.first_position != 0


class _Writer:
    """Collects tensors in HF's layout: sines, then cosines."""

    def __init__(self, d_model: int):
        self.tensors: Tensors = {}
        self._d_model = d_model
        self._order = np.argsort(interleaved_from_halves(d_model))

    def add(self, name: str, tensor: npt.NDArray[np.float32]) -> None:
        self.tensors[name] = np.ascontiguousarray(tensor)

    def add_table(self, name: str, part: Params) -> None:
        self.add(name, part["table"][:, self._order])

    def add_layer(self, name: str, layer: Params) -> None:
        for ours, theirs in _ATTENTIONS.items():
            if ours in layer:
                self._add_attention(f"{name}.{theirs}", layer[ours])
                self._add_norm(f"{name}.{theirs}_layer_norm", layer[f"{ours}_norm"])
        inner, outer = (layer["feed_forward"][part] for part in ("inner", "outer"))
        self.add(f"{name}.fc1.weight", inner["kernel"][self._order].T)
        self.add(f"{name}.fc1.bias", inner["bias"])
        self.add(f"{name}.fc2.weight", outer["kernel"][:, self._order].T)
        self.add(f"{name}.fc2.bias", outer["bias"][self._order])
        self._add_norm(f"{name}.final_layer_norm", layer["feed_forward_norm"])

    def _add_attention(self, name: str, part: Params) -> None:
        zeros = np.zeros(self._d_model, np.float32)
        for ours, theirs in _PROJECTIONS.items():
            kernel_DxE = part[ours]["kernel"].reshape(self._d_model, -1)
            self.add(f"{name}.{theirs}.weight", kernel_DxE[self._order].T)
            bias = part[ours].get("bias", zeros)
            self.add(f"{name}.{theirs}.bias", bias.reshape(-1))
        kernel_ExD = part["output"]["kernel"].reshape(-1, self._d_model)
        self.add(f"{name}.out_proj.weight", kernel_ExD[:, self._order].T)
        bias = part["output"].get("bias", zeros)
        self.add(f"{name}.out_proj.bias", bias[self._order])

    def _add_norm(self, name: str, part: Params) -> None:
        self.add(f"{name}.weight", part["scale"][self._order])
        self.add(f"{name}.bias", part["bias"][self._order])
