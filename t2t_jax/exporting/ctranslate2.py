"""Converts a Transformer to a CTranslate2 model, which needs neither JAX nor Python.

CTranslate2 supports the paper's architecture with post- and pre-norm, but not the
recurrent baseline. Measured with version 4.8.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import BOS, EOS, UNK
from t2t_jax.errors import UserError
from t2t_jax.functional.positions import sinusoidal_positions
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import Params

_Matrix = npt.NDArray[np.float32]

MIN_POSITIONS = 2048  # CTranslate2's own default number of sinusoids


def fill_stacks(
    spec: Any, params: Params, *, config: TransformerConfig, positions: int
) -> None:
    """Copies all parameters of a Transformer into a specification.

    Args:
      spec: `ctranslate2.specs.TransformerSpec` with as many layers, heads and norms.
      positions: number of sinusoids.
    """
    # Copies, as CTranslate2 quantizes matrices in place.
    params = jax.tree.map(np.array, params)
    tables = _tables(params)
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part = params[side]
        stack.scale_embeddings = True  # times sqrt(d_model), §3.4
        stack.position_encodings.encodings = _positions(part, config, positions)
        if config.norm_position == "pre":
            _fill_norm(stack.layer_norm, part["final_norm"])
        for number, layer in enumerate(stack.layer):
            _fill_layer(layer, part[f"layer_{number}"], config)
    spec.encoder.embeddings[0].weight = tables["source"]
    spec.decoder.embeddings.weight = tables["target"]
    spec.decoder.projection.weight = tables["pre_softmax"]


def _tables(params: Params) -> dict[str, _Matrix]:
    target = params.get("target_embedding", params.get("embedding"))
    parts = {
        "source": params.get("source_embedding", target),
        "target": target,
        "pre_softmax": params.get("pre_softmax", target),
    }
    return {name: part["table"] for name, part in parts.items()}


def _positions(stack: Params, config: TransformerConfig, count: int) -> _Matrix:
    if config.positions == "learned":
        # Scaled like the token embeddings.
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
    """Reshapes W^Q, W^K or W^V from [D, H, K] to [H * depth, D], zero-padded."""
    d_model, heads, own = kernel_DxHxK.shape
    filled = np.pad(kernel_DxHxK, ((0, 0), (0, 0), (0, depth - own)))
    return filled.reshape(d_model, heads * depth).T


def _heads_last(kernel_HxVxD: _Matrix, depth: int) -> _Matrix:
    """Reshapes W^O from [H, Dv, D] to [D, H * depth], zero-padded."""
    heads, own, d_model = kernel_HxVxD.shape
    filled = np.pad(kernel_HxVxD, ((0, 0), (0, depth - own), (0, 0)))
    return filled.reshape(heads * depth, d_model).T


def require_ctranslate2() -> None:
    """Checks that CTranslate2 is installed, before anything is written.

    Raises:
      UserError: it is not.
    """
    if find_spec("ctranslate2") is None:
        raise UserError(
            "--format=ctranslate2 needs CTranslate2, which is not installed. "
            "Run: pip install -e '.[export]'"
        )


def require_transformer(config: Config) -> None:
    """Checks that CTranslate2 supports the model.

    Raises:
      UserError: it does not.
    """
    if config.architecture != "transformer":
        raise UserError(
            "--format=ctranslate2 requires a Transformer, but --workdir holds "
            f"architecture={config.architecture!r}, which CTranslate2 does not "
            "support. Use --format=model_dir or --format=safetensors."
        )


def exported_positions(config: Config) -> int:
    """Returns the number of positions of an exported model.

    Example:
      >>> exported_positions(Config())
      2048
      >>> learned = TransformerConfig(positions="learned", max_positions=1500)
      >>> exported_positions(Config(model=learned))
      1500
    """
    if config.model.positions == "learned":
        return config.model.max_positions
    decoding = config.decoding
    return max(decoding.max_source_length + decoding.max_extra_tokens, MIN_POSITIONS)


def write_ctranslate2(
    to: Path,
    params: Params,
    *,
    config: Config,
    vocabularies: VocabularyPair,
    quantization: str = "float32",
) -> None:
    """Writes a CTranslate2 model and the SentencePiece models.

    Args:
      quantization: one of `formats.QUANTIZATIONS`.

    Raises:
      UserError: CTranslate2 is not installed, or does not support the model.
    """
    require_ctranslate2()
    require_transformer(config)
    spec = _specification(config)
    fill_stacks(spec, params, config=config.model, positions=exported_positions(config))
    sides = [side.pieces(range(side.size)) for side in vocabularies]
    # CTranslate2 has one name for each special piece, shared by both sides.
    sides[0][: UNK + 1] = sides[1][: UNK + 1]
    spec.register_source_vocabulary(sides[0])
    spec.register_target_vocabulary(sides[1])
    settings = spec.config
    settings.layer_norm_epsilon = config.model.layer_norm_epsilon
    settings.add_source_eos = True
    settings.decoder_start_token = settings.bos_token = sides[1][BOS]
    settings.eos_token, settings.unk_token = sides[1][EOS], sides[1][UNK]
    spec.validate()
    spec.optimize(quantization)
    vocabularies.save(to)
    spec.save(str(to))


def _specification(config: Config) -> Any:
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerSpec

    model = config.model
    spec = TransformerSpec.from_config(
        model.num_layers,
        model.num_heads,
        pre_norm=model.norm_position == "pre",
        activation=Activation.RELU,
    )
    # Returned by `return_attention`: the mean of all heads of the layer.
    spec.decoder.alignment_layer = np.int16(config.decoding.attention_layer)
    spec.decoder.alignment_heads = np.int16(model.num_heads)
    return spec
