"""Writes a Transformer as a model of CTranslate2, which needs neither JAX nor Python.

CTranslate2 knows the paper's architecture, before and after its norms moved, and
nothing of the recurrent baseline. Version 4.8 is what the figures were measured with.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from t2t_jax.config import Config
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.data.vocabulary import BOS, EOS, UNK
from t2t_jax.errors import UserError
from t2t_jax.exporting.ctranslate2_layers import fill_stacks, num_positions
from t2t_jax.types import Params


def require_ctranslate2() -> None:
    """Checks that CTranslate2 is there, before there is anything to write.

    Raises:
      UserError: it is not installed.
    """
    if find_spec("ctranslate2") is None:
        raise UserError(
            "--to=ctranslate2 needs CTranslate2, which is not installed. "
            "Run: pip install -e '.[export]'"
        )


def require_transformer(config: Config) -> None:
    """Checks that CTranslate2 knows what the model is.

    Raises:
      UserError: it does not.
    """
    if config.architecture != "transformer":
        raise UserError(
            "--to=ctranslate2 takes a Transformer, and --workdir holds architecture="
            f"{config.architecture!r}, which CTranslate2 does not know. Export it with "
            "--to=model_dir or --to=safetensors."
        )


def written_positions(config: Config) -> int:
    """Says how many positions the exported model of a configuration knows.

    Args:
      config: of a Transformer.

    Example:
      >>> written_positions(Config())
      2048
    """
    decoding = config.decoding
    longest = decoding.max_source_length + decoding.max_extra_tokens
    return num_positions(config.model, longest=longest)


def write_ctranslate2(
    to: Path,
    params: Params,
    *,
    config: Config,
    vocabularies: Vocabularies,
    quantization: str = "float32",
) -> None:
    """Writes what CTranslate2 loads, and the SentencePiece models beside it.

    Args:
      to: the directory, made where there is none.
      params: nested dict of float32 arrays.
      config: of a Transformer.
      vocabularies: of both sides.
      quantization: one of `forms.QUANTIZATIONS`.

    Raises:
      UserError: CTranslate2 is not installed, or does not know the model.
    """
    require_ctranslate2()
    require_transformer(config)
    spec = _specification(config)
    fill_stacks(spec, params, config=config.model, positions=written_positions(config))
    sides = [side.pieces(range(side.size)) for side in vocabularies]
    # CTranslate2 has one name for each special piece, whichever side it is of.
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
    # What `return_attention` gives: the mean of all heads of the chosen layer.
    spec.decoder.alignment_layer = np.int16(config.decoding.attention_layer)
    spec.decoder.alignment_heads = np.int16(model.num_heads)
    return spec
