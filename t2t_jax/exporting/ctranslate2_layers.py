"""The paper's layers as CTranslate2 spells them: the same numbers, other shapes.

A matrix stands there with its outputs first, queries, keys and values of self-attention
in one matrix (keys and values in one where the decoder looks at the memory), and heads
have one depth. Where d_k and d_v differ, the smaller is filled up with zeros, which
changes no sum; the scale 1 / sqrt(d_k) is written down beside.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.functional.positions import sinusoidal_positions
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import Params

_Matrix = npt.NDArray[np.float32]

LEAST_POSITIONS = 2048
"""How many sinusoids are written at least: CTranslate2 makes no more of them itself."""


def fill_stacks(
    spec: Any, params: Params, *, config: TransformerConfig, positions: int
) -> None:
    """Gives a specification all parameters of a Transformer.

    Args:
      spec: `ctranslate2.specs.TransformerSpec` of as many layers, heads and norms.
      params: nested dict of float32 arrays.
      config: of the model.
      positions: how many sinusoids; a learned table has its own number.
    """
    # Copies, for CTranslate2 makes whole numbers of a matrix where it lies.
    params = jax.tree.map(np.array, params)
    tables = _tables(params)
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part = params[side]
        stack.scale_embeddings = True  # times sqrt(d_model), as §3.4 says
        stack.position_encodings.encodings = _positions(part, config, positions)
        if config.norm_position == "pre":
            _fill_norm(stack.layer_norm, part["final_norm"])
        for number, layer in enumerate(stack.layer):
            _fill_layer(layer, part[f"layer_{number}"], config)
    spec.encoder.embeddings[0].weight = tables["source"]
    spec.decoder.embeddings.weight = tables["target"]
    spec.decoder.projection.weight = tables["pre_softmax"]


def num_positions(config: TransformerConfig, *, longest: int) -> int:
    """Says how many positions an exported model knows.

    Args:
      config: of the model.
      longest: tokens of the longest output that its own translator would make.

    Example:
      >>> num_positions(TransformerConfig(), longest=1074)
      2048
      >>> learned = TransformerConfig(positions="learned", max_positions=512)
      >>> num_positions(learned, longest=114)
      512
    """
    if config.positions == "learned":
        return config.max_positions
    return max(longest, LEAST_POSITIONS)


def _tables(params: Params) -> dict[str, _Matrix]:
    """Finds the three matrices of the vocabulary, whichever of them are one."""
    target = params.get("target_embedding", params.get("embedding"))
    parts = {
        "source": params.get("source_embedding", target),
        "target": target,
        "pre_softmax": params.get("pre_softmax", target),
    }
    return {name: part["table"] for name, part in parts.items()}


def _positions(stack: Params, config: TransformerConfig, count: int) -> _Matrix:
    if config.positions == "learned":
        # Looked up as words are, and so as many times larger.
        table: _Matrix = stack["positions"]["learned"]["table"]
        return table * np.float32(math.sqrt(config.d_model))
    return np.array(sinusoidal_positions(np.arange(count), config.d_model))


def _fill_layer(layer: Any, params: Params, config: TransformerConfig) -> None:
    scale = np.float32(1 / math.sqrt(config.d_k))
    attentions = [("self_attention", layer.self_attention, True)]
    if "cross_attention" in params:
        attentions.append(("cross_attention", layer.attention, False))
    for name, spec, is_self in attentions:
        _fill_attention(spec, params[name], is_self=is_self)
        _fill_norm(spec.layer_norm, params[f"{name}_norm"])
        spec.queries_scale = scale
    inner_and_outer = (layer.ffn.linear_0, layer.ffn.linear_1)
    for name, spec in zip(("inner", "outer"), inner_and_outer, strict=True):
        spec.weight = params["feed_forward"][name]["kernel"].T
        spec.bias = params["feed_forward"][name]["bias"]
    _fill_norm(layer.ffn.layer_norm, params["feed_forward_norm"])


def _fill_norm(spec: Any, params: Params) -> None:
    spec.gamma, spec.beta = params["scale"], params["bias"]


def _fill_attention(spec: Any, params: Params, *, is_self: bool) -> None:
    kernels = {name: part["kernel"] for name, part in params.items()}
    depth = max(kernels["key"].shape[2], kernels["value"].shape[2])
    query, key, value = (
        _heads_first(kernels[name], depth) for name in ("query", "key", "value")
    )
    inputs = [[query, key, value]] if is_self else [[query], [key, value]]
    for linear, rows in zip(spec.linear, inputs, strict=False):
        linear.weight = np.concatenate(rows)
    spec.linear[-1].weight = _heads_last(kernels["output"], depth)


def _heads_first(kernel_DxHxK: _Matrix, depth: int) -> _Matrix:
    """Turns W^Q, W^K or W^V, [D, H, K], into [H * depth, D]."""
    d_model, heads, own = kernel_DxHxK.shape
    filled = np.pad(kernel_DxHxK, ((0, 0), (0, 0), (0, depth - own)))
    return filled.reshape(d_model, heads * depth).T


def _heads_last(kernel_HxVxD: _Matrix, depth: int) -> _Matrix:
    """Turns W^O, [H, Dv, D], into [D, H * depth]."""
    heads, own, d_model = kernel_HxVxD.shape
    filled = np.pad(kernel_HxVxD, ((0, 0), (0, depth - own), (0, 0)))
    return filled.reshape(heads * depth, d_model).T
