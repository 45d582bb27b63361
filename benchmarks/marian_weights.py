"""Our weights in Hugging Face's MarianMTModel, number for number; needs PyTorch.

What differs there: sines and cosines stand in two halves where ours take turns, so the
coordinates of d_model are put in another order everywhere; projections have biases,
which are zero here; and the epsilon of layer normalisation is another, which is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from peer_networks import marian
from torch import nn

from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import Params

Floats = npt.NDArray[np.float32]

_ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
_NORMS = {
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward_norm": "final_layer_norm",
}


def marian_with(config: TransformerConfig, params: Params) -> nn.Module:
    """Builds a MarianMTModel that says what our model says.

    Args:
      config: of our model.
      params: nested dict of its weights.

    Returns:
      The model in float32, ready to decode.

    Raises:
      ValueError: Marian has no such model.
    """
    _require_marian(config)
    model = marian(config)
    state = {name: torch.from_numpy(x.copy()) for name, x in _state(params)}
    zeros = {
        name: torch.zeros_like(x)
        for name, x in model.state_dict().items()
        if name.endswith("_proj.bias")
    }
    told = model.load_state_dict(zeros | state, strict=False)
    # Sinusoids are no weights, and what is tied goes by its first name.
    own = ("embed_positions.weight", "embed_tokens.weight", "lm_head.weight")
    missing = [name for name in told.missing_keys if not name.endswith(own)]
    missing = [name for name in missing if name != "final_logits_bias"]
    if missing or told.unexpected_keys:
        raise ValueError(
            f"MarianMTModel must have the weights of ours, but misses {missing} and "
            f"does not know {told.unexpected_keys}. Take transformers 5.23."
        )
    return _with_epsilon(model, config.layer_norm_epsilon)


def read_marian(directory: str, *, epsilon: float) -> Any:
    """Reads a MarianMTModel that `marian_with` has built.

    Args:
      directory: written by its `save_pretrained`.
      epsilon: of layer normalisation, which is not written.
    """
    from transformers import MarianMTModel

    return _with_epsilon(MarianMTModel.from_pretrained(directory), epsilon)


def _with_epsilon(model: nn.Module, epsilon: float) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = epsilon
    return model.eval()


def _require_marian(config: TransformerConfig) -> None:
    of_a_head = config.d_model / config.num_heads
    wanted = {
        "norm_position": "post",
        "positions": "sinusoidal",
        "tying": "all",
        "d_k": of_a_head,
        "d_v": of_a_head,
        "activation": "relu",
        "attention_biases": False,
        "output_bias": False,
        "scale_embeddings": True,
        "position_rates": "paper",
        "first_position": 0,
        "start": "bos",
    }
    for name, value in wanted.items():
        if (came := getattr(config, name)) != value:
            raise ValueError(
                f"Marian needs model.{name}={value!r}, and it is {came!r}. "
                "Take another peer."
            )


def _state(params: Params) -> Iterator[tuple[str, Floats]]:
    """Yields Marian's names and numbers; all but biases are [outputs, inputs]."""
    table = np.asarray(params["embedding"]["table"])
    order = np.concatenate([np.arange(first, table.shape[1], 2) for first in (0, 1)])
    yield "model.shared.weight", table[:, order]
    for side in ("encoder", "decoder"):
        for number in range(len(params[side])):
            layer = params[side][f"layer_{number}"]
            for name, x in _layer(layer, order):
                yield f"model.{side}.layers.{number}.{name}", x


def _layer(
    layer: Mapping[str, Any], order: npt.NDArray[np.intp]
) -> Iterator[tuple[str, Floats]]:
    for ours, theirs in _ATTENTIONS.items():
        for name in ("query", "key", "value") if ours in layer else ():
            kernel = np.asarray(layer[ours][name]["kernel"])
            flat = kernel.reshape(len(order), -1)
            yield f"{theirs}.{name[0]}_proj.weight", flat[order].T
        if ours in layer:
            kernel = np.asarray(layer[ours]["output"]["kernel"])
            flat = kernel.reshape(-1, len(order))
            yield f"{theirs}.out_proj.weight", flat[:, order].T
    for ours, theirs in _NORMS.items():
        if ours in layer:
            yield f"{theirs}.weight", np.asarray(layer[ours]["scale"])[order]
            yield f"{theirs}.bias", np.asarray(layer[ours]["bias"])[order]
    inner, outer = (layer["feed_forward"][name] for name in ("inner", "outer"))
    yield "fc1.weight", np.asarray(inner["kernel"])[order].T
    yield "fc1.bias", np.asarray(inner["bias"])
    yield "fc2.weight", np.asarray(outer["kernel"])[:, order].T
    yield "fc2.bias", np.asarray(outer["bias"])[order]
