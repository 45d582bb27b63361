"""Exports to Hugging Face Transformers, as a MarianMTModel with its tokenizer.

HF's positions are the paper's, and its biases may be zero, so the model is the same but
for one constant: the epsilon of torch's layer normalization is 1e-5. Models with other
wavelengths, as Marian's, take theirs with them as tensors.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from t2t_jax.checkpointing.safetensors_io import require_safetensors, write_safetensors
from t2t_jax.config import Config
from t2t_jax.data.vocabulary.vocabulary import Vocabulary, table_of
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import UserError
from t2t_jax.exchange.cards import fill_usage
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    ExportSpec,
    Original,
    Supported,
    distinct_pieces,
    even_heads,
    imported_backend,
    require_transformer,
    write_json,
)
from t2t_jax.exchange.exporting.verification import FLOAT32, Backend
from t2t_jax.exchange.importing.hf_marian import (
    SPM,
    TARGET_VOCABULARY,
    TOKENIZER,
    VOCABULARY,
    WEIGHTS,
    read_hf_marian,
)
from t2t_jax.exchange.importing.hf_settings import (
    COMPUTED,
    CONFIG,
    GENERATION,
    HF_EPSILON,
    MARKER,
    MOST_FIRST_POSITION,
    POSITION_TABLES,
    position_table,
)
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.exchange.importing.layout import (
    foreign_layers,
    foreign_matrices,
    torch_name,
)
from t2t_jax.functional.feed_forward import ACTIVATIONS
from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.types import BOS, EOS, PAD, UNK, Params

_SUPPORTED: Supported = {
    "norm": ("layer",),
    "activation": tuple(ACTIVATIONS),
    "norm_position": ("post",),
    "positions": ("sinusoidal",),
    "tag_position": ("first",),
    "first_position": tuple(range(MOST_FIRST_POSITION + 1)),
}


class HFMarianFormat(ExportFormat):
    """MarianMTModels of Hugging Face Transformers."""

    library = "transformers"
    verified_with = "this directory, computed as Hugging Face Transformers does"
    tags = ("marian", "pytorch")
    # The other epsilon changes log-probabilities of a trained model of 2 + 2 layers and
    # width 64 by at most 5.1e-5, and none of 200 outputs.
    tolerance = FLOAT32._replace(largest=5e-4)

    def check_supported(self, config: Config) -> None:
        """Checks that a MarianMTModel can represent the model."""
        require_safetensors()
        advice = "Use --format=model_dir or --format=safetensors."
        supported = {**_SUPPORTED, **even_heads(config)}
        if config.model.layer_norm_epsilon > HF_EPSILON:
            supported["layer_norm_epsilon"] = (f"{HF_EPSILON:g} or less",)
        require_transformer(config, "hf_marian", supported, advice=advice)

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes weights, configuration and tokenizer."""
        config, params = original.config, original.model.params
        names = ("pad_token_id", "bos_token_id", "eos_token_id")
        ids = dict(zip(names, (PAD, BOS, EOS), strict=True))
        ids["decoder_start_token_id"] = _start_of(config.model, params)
        tags = original.model.vocabularies.target.tags.values()
        _write_tokenizer(to, original)
        write_json(to / CONFIG, _config(config, ids))
        found = generation(config, ids, unk=UNK, tags=tags)
        write_json(to / GENERATION, {**found, "forced_eos_token_id": None})
        tensors = to_tensors(params, config)
        write_safetensors(to / WEIGHTS[0], tensors, metadata={"format": "pt"})

    def load(self, directory: Path, original: Original) -> Backend:
        """Reads it again, and compares the parameters bit by bit."""
        options = ImportOptions(positions="huggingface")
        return imported_backend(original, read_hf_marian(directory, options))

    def usage(self, original: Original, *, name: str) -> str:
        """Describes `MarianMTModel` and `MarianTokenizer`."""
        return fill_usage(
            "hf_marian",
            original,
            name,
            positions=exported_positions(original.config),
            hf_epsilon=HF_EPSILON,
            has_other_positions=has_other_positions(original.config.model),
        )


def exported_positions(config: Config) -> int:
    """Returns the number of positions of an export: source and extra tokens.

    Example:
      >>> exported_positions(Config())
      1074
    """
    return config.decoding.max_source_length + config.decoding.max_extra_tokens


def _start_of(model: TransformerConfig, params: Params) -> int:
    """Returns the id whose vector the decoder starts with."""
    if model.start != "zero":
        return EOS if model.start == "eos" else BOS
    table = params["embedding" if model.tying == "all" else "target_embedding"]["table"]
    return PAD if np.any(table[BOS]) else BOS


def _config(config: Config, ids: Mapping[str, int]) -> dict[str, Any]:
    model, vocabulary = config.model, config.vocabulary
    found = configuration(config, "MarianMTModel", ids)
    found[MARKER] |= {key: getattr(model, key) for key in COMPUTED}
    return {
        **found,
        "model_type": "marian",
        "vocab_size": vocabulary.own_source_size or vocabulary.size,
        "decoder_vocab_size": vocabulary.size,
        "share_encoder_decoder_embeddings": model.tying == "all",
        "tie_word_embeddings": model.tying != "none",
        "forced_eos_token_id": None,
    }


def configuration(config: Config, name: str, ids: Mapping[str, int]) -> dict[str, Any]:
    """Returns what `config.json` has of every kind of model.

    Args:
      name: of HF's class.
      ids: of special tokens, by HF's keys.
    """
    model = config.model
    decoding = dataclasses.asdict(config.decoding).items()
    usual = dataclasses.asdict(DecodingConfig()).items()
    return {
        "architectures": [name],
        "is_encoder_decoder": True,
        "vocab_size": config.vocabulary.size,
        "d_model": model.d_model,
        "encoder_layers": model.num_layers,
        "decoder_layers": decoder_layers(model),
        "encoder_attention_heads": model.num_heads,
        "decoder_attention_heads": model.num_heads,
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), model.d_ff),
        "activation_function": model.activation,
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.relu_dropout,
        "scale_embedding": model.scale_embeddings,
        "tie_word_embeddings": True,
        "max_position_embeddings": exported_positions(config),
        **ids,
        "dtype": "float32",
        MARKER: {"decoding": dict(one for one in decoding if one not in usual)},
    }


def generation(
    config: Config, ids: Mapping[str, int], *, unk: int, tags: Iterable[int]
) -> dict[str, Any]:
    """Returns `generation_config.json`.

    Args:
      ids: of special tokens, by HF's keys.
      unk, tags: HF's ids of the unknown token, and of those of languages.
    """
    decoding = config.decoding
    never = [ids["pad_token_id"], ids["bos_token_id"], *tags]
    never += [unk] * (not decoding.allow_unk)
    found = {
        **ids,
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "max_length": exported_positions(config),
        "bad_words_ids": [[token] for token in never],
    }
    least = decoding.min_tokens
    return {**found, "min_new_tokens": least} if least else found


def _write_tokenizer(to: Path, original: Original) -> None:
    source, target = original.model.vocabularies
    separate = original.config.vocabulary.own_source_size > 0
    for name, vocabulary in zip(SPM, (source, target), strict=True):
        (to / name).write_bytes(_sentencepiece(vocabulary))
    write_json(to / VOCABULARY, _ids(source if separate else target))
    if separate:
        write_json(to / TARGET_VOCABULARY, _ids(target))
    languages = original.languages or (None, None)
    # Outputs begin with bos, and special tokens are left out of the text.
    names = ("pad_token", "bos_token", "eos_token", "unk_token")
    settings: dict[str, Any] = {
        "tokenizer_class": "MarianTokenizer",
        **dict(zip(("source_lang", "target_lang"), languages, strict=True)),
        **dict(zip(names, target.pieces(range(UNK + 1)), strict=True)),
        "model_max_length": exported_positions(original.config),
        "separate_vocabs": separate,
        "sp_model_kwargs": {},
    }
    write_json(to / TOKENIZER, settings)


def _sentencepiece(vocabulary: Vocabulary) -> bytes:
    """Returns the SentencePiece model that splits text."""
    if not (table := table_of(vocabulary)):
        return vocabulary.model
    has_moses = bool(table.get("moses"))  # HF's tokenizer does not have its rules
    if has_moses or table["kind"] != "sentencepiece_table":
        kind = "one that normalizes punctuation" if has_moses else repr(table["kind"])
        raise UserError(
            "--format=hf_marian requires a vocabulary of SentencePiece that does not "
            f"normalize punctuation, and the model has {kind}. Use --format=model_dir."
        )
    return base64.b64decode(table["sentencepiece"])


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    names = distinct_pieces(vocabulary.pieces(range(vocabulary.size)))
    return {name: id_ for id_, name in enumerate(names)}


_MATRICES = {
    "embedding": "model.shared.weight",
    "source_embedding": "model.encoder.embed_tokens.weight",
    "target_embedding": "model.decoder.embed_tokens.weight",
    "pre_softmax": "lm_head.weight",
}
Tensors: TypeAlias = dict[str, npt.NDArray[np.float32]]


def to_tensors(params: Params, config: Config) -> Tensors:
    """Returns HF's tensors by name: permuted, transposed, with biases of zero.

    Args:
      params: of a post-norm `Transformer` with sinusoids, d_k = d_v = d_model / h.
    """
    model, count = config.model, exported_positions(config)
    tensors = layer_tensors(params, model)
    tables, bias = foreign_matrices(params, model)
    tensors |= {_MATRICES[path]: table for path, table in tables.items()}
    tensors["final_logits_bias"] = bias[None]
    if has_other_positions(model):
        rates, first = model.position_rates, model.first_position
        table = position_table(count, model.d_model, rates=rates, first=first)
        tensors |= dict.fromkeys(POSITION_TABLES, table)
    return tensors


def layer_tensors(params: Params, config: TransformerConfig) -> Tensors:
    """Returns HF's tensors of both stacks."""
    layers = foreign_layers(params, config)
    return {f"model.{torch_name(path, kind)}": array.T for path, kind, array in layers}


def has_other_positions(config: TransformerConfig) -> bool:
    """Returns whether HF would compute other sinusoids than the model's."""
    return config.position_rates != "paper" or config.first_position != 0
