"""Imports Transformers of fairseq: a checkpoint, its dictionaries and codes.

The fields of a checkpoint's arguments decide what the model computes, not the name of
its architecture. What has no counterpart here is refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t_jax.errors import DataError, short_repr
from t2t_jax.exchange.importing.fairseq.vocabulary import find_vocabularies
from t2t_jax.exchange.importing.fairseq.weights import read_weights
from t2t_jax.exchange.importing.imported import ImportedModel, ImportOptions
from t2t_jax.exchange.importing.source import Source
from t2t_jax.exchange.readers.torch_file import read_torch_file
from t2t_jax.model.config import is_size

_STACKS = ("encoder", "decoder")
_CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt", "model.pt")
_FIRST_BYTES = (b"PK\x03\x04", b"\x80\x02\x8a\x0a")  # of a zip; of a pickle of magic
_LAYER_NORM_EPSILON = 1e-5
_FIRST_POSITION = 2  # after that of pad
_LANGUAGE = re.compile(r"[\w-]{1,40}")  # a part of file names
_MAX_EXTRA_TOKENS = 200
_MAX_SHOWN = 100  # characters of an argument

# Arguments that make another model if they are set.
_UNSUPPORTED = (
    *("adaptive_input", "adaptive_softmax_cutoff", "tie_adaptive_weights"),
    *("base_layers", "char_inputs", "character_embeddings", "layernorm_embedding"),
    *("cross_self_attention", "no_cross_attention", "no_token_positional_embeddings"),
    *("decoder_langtok", "encoder_langtok", "merge_src_tgt_embed"),
    *("decoder_layers_to_keep", "encoder_layers_to_keep"),
    *("decoder_xformers_att_config", "encoder_xformers_att_config"),
    *("quant_noise_pq", "quant_noise_scalar"),
)
_EQUAL_IN_BOTH = (
    *("attention_heads", "embed_dim", "ffn_embed_dim", "learned_pos"),
    "normalize_before",
)
_ACTIVATIONS = ("relu", "gelu")
_DROPOUTS = {
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "activation_dropout": "relu_dropout",
}


def is_fairseq(path: Path) -> bool:
    """Returns whether a path is a checkpoint of fairseq, or a directory with one."""
    if path.is_dir():
        return any(path.glob("dict.*.txt")) and any(path.glob("*.pt"))
    if path.suffix != ".pt" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) in _FIRST_BYTES


def read_fairseq(path: Path, options: ImportOptions) -> ImportedModel:
    """Reads a Transformer of fairseq.

    Args:
      path: a checkpoint, or a directory with `checkpoint_best.pt`,
        `checkpoint_last.pt`, `model.pt` or a single other `.pt`; `dict.LANGUAGE.txt`
        of both sides and the codes lie beside it.

    Raises:
      DataError: a file is damaged, or the model of an unsupported kind.
      InputMissingError: a file is missing.
    """
    checkpoint = _checkpoint_of(path)
    name = str(checkpoint)
    arguments, tensors = _read_checkpoint(checkpoint)
    source = Source(tensors, name=name)
    model = _config_of(arguments, source, name=name)
    languages = tuple(
        language
        for side in ("source", "target")
        if _LANGUAGE.fullmatch(str(language := arguments.get(f"{side}_lang") or ""))
    )
    found = find_vocabularies(
        checkpoint.parent, languages=languages, given=options.vocabularies
    )
    shared = found.vocabularies.shared
    if model["tying"] == "all" and not shared:
        raise DataError(
            f"{name} has one matrix for both languages, but their dictionaries "
            "differ. Pass the dictionaries of this model."
        )
    params = read_weights(source, model, sizes=found.sizes)
    config = {f"model.{key}": value for key, value in model.items()}
    config["vocabulary.size"] = found.sizes[1]
    config["vocabulary.source_size"] = 0 if shared else found.sizes[0]
    return ImportedModel(
        config=config | _decoding_of(model),
        params=params,
        vocabularies=found.vocabularies,
        files=(checkpoint, *found.files),
        notes=(*found.notes, *_notes_of(arguments, source, model)),
        languages=(languages[0], languages[1]) if len(languages) == 2 else None,
    )


def _checkpoint_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in _CHECKPOINTS:
        if (path / name).is_file():
            return path / name
    found = sorted(path.glob("*.pt"))
    if len(found) != 1:
        raise DataError(
            f"{path} must have a {', '.join(_CHECKPOINTS)} or a single other .pt file, "
            f"and has {len(found)}. Pass the path of a checkpoint."
        )
    return found[0]


def _read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the arguments, in one level, and the tensors by name."""
    state = read_torch_file(path)
    tensors = state.get("model") if isinstance(state, dict) else None
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and isinstance(tensor, np.ndarray)
        for name, tensor in tensors.items()
    ):
        raise DataError(
            f"{path} has no state of a model. Pass a checkpoint of fairseq, which has "
            "its arguments and tensors in 'args' or 'cfg', and 'model'."
        )
    arguments, config = state.get("args"), state.get("cfg")
    flat = _flat(arguments)
    if not flat and isinstance(config, dict):
        flat = _flat(config.get("task")) | _flat(config.get("model"))
    if not flat:
        raise DataError(
            f"{path} has no arguments of a model, neither 'args' nor 'cfg'. Pass a "
            "checkpoint that fairseq has saved."
        )
    return flat, tensors


def _flat(section: Any) -> dict[str, Any]:
    """Returns the values of a section; those of `encoder` as `encoder_…`."""
    flat: dict[str, Any] = {}
    for key, value in section.items() if isinstance(section, dict) else ():
        if isinstance(value, dict) and key in (*_STACKS, "quant_noise"):
            flat |= {f"{key}_{name}": _plain(each) for name, each in value.items()}
        elif isinstance(key, str):
            flat[key] = _plain(value)
    return flat


def _plain(value: Any) -> str | float | None:
    """Returns a value that can be compared, and shown in a message."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:_MAX_SHOWN]
    is_empty = isinstance(value, list | tuple | dict) and not value
    return None if is_empty else short_repr(value)


def _config_of(
    arguments: Mapping[str, Any], source: Source, *, name: str
) -> dict[str, Any]:
    """Returns `config.model`, by key."""
    _check_supported(arguments, name=name)
    activation = arguments.get("activation_fn") or "relu"
    if activation not in _ACTIVATIONS:
        raise DataError(
            f"{name}: models with activation_fn={short_repr(activation)} are not "
            f"supported, only {', '.join(_ACTIVATIONS)}."
        )
    sizes = _sizes_of(arguments, name=name)
    config = {
        **sizes,
        **_dropouts_of(arguments),
        "norm_position": "pre" if arguments.get("encoder_normalize_before") else "post",
        "activation": activation,
        "attention_biases": True,
        "position_rates": "tensor2tensor",
        "first_position": _FIRST_POSITION,
        "start": "eos",
        "scale_embeddings": not arguments.get("no_scale_embedding"),
        "tying": _tying_of(arguments),
        "layer_norm_epsilon": _LAYER_NORM_EPSILON,
    }
    if arguments.get("encoder_learned_pos"):
        shapes = [source.shape(f"{s}.embed_positions.weight") for s in _STACKS]
        rows = min(shape[0] if shape else 0 for shape in shapes)
        config |= {
            "positions": "learned",
            "max_positions": max(rows - _FIRST_POSITION, 1),
        }
    return config


def _check_supported(arguments: Mapping[str, Any], *, name: str) -> None:
    for argument in _UNSUPPORTED:
        if value := arguments.get(argument):
            raise DataError(
                f"{name}: models with {argument}={short_repr(value)} are not supported."
            )
    for argument in _EQUAL_IN_BOTH:
        first, second = (arguments.get(f"{stack}_{argument}") for stack in _STACKS)
        if (first or None) != (second or None):
            raise DataError(
                f"{name}: models with encoder_{argument}={short_repr(first)} and "
                f"decoder_{argument}={short_repr(second)} are not supported, only "
                "with the same."
            )
    d_model = arguments.get("decoder_embed_dim")
    for argument in ("decoder_input_dim", "decoder_output_dim"):
        if arguments.get(argument) not in (None, d_model):
            raise DataError(
                f"{name}: models with {argument}={short_repr(arguments[argument])} are "
                f"not supported, only with decoder_embed_dim={short_repr(d_model)}."
            )


def _sizes_of(arguments: Mapping[str, Any], *, name: str) -> dict[str, int]:
    sizes: dict[str, Any] = {}
    for key, argument in {
        "d_model": "encoder_embed_dim",
        "d_ff": "encoder_ffn_embed_dim",
        "num_heads": "encoder_attention_heads",
        "num_layers": "encoder_layers",
        "num_decoder_layers": "decoder_layers",
    }.items():
        sizes[key] = arguments.get(argument)
        if not is_size(sizes[key]):
            raise DataError(
                f"{name}: {argument}={short_repr(sizes[key])} is not a size of a "
                "model. Pass a checkpoint that fairseq has saved."
            )
    if sizes["d_model"] % 2 or sizes["d_model"] % sizes["num_heads"]:
        raise DataError(
            f"{name}: encoder_embed_dim={sizes['d_model']} must be even, and divisible "
            f"by encoder_attention_heads={sizes['num_heads']}. Pass another checkpoint."
        )
    depth = sizes["d_model"] // sizes["num_heads"]
    return sizes | {"d_k": depth, "d_v": depth}


def _dropouts_of(arguments: Mapping[str, Any]) -> dict[str, float]:
    """Returns the dropouts of the training, which no output depends on."""
    rates = {key: arguments.get(argument) for argument, key in _DROPOUTS.items()}
    return {
        key: float(rate)
        for key, rate in rates.items()
        if isinstance(rate, int | float) and 0 <= rate < 1
    }


def _tying_of(arguments: Mapping[str, Any]) -> str:
    if arguments.get("share_all_embeddings"):
        return "all"
    return "decoder" if arguments.get("share_decoder_input_output_embed") else "none"


def _decoding_of(model: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of fairseq's decoding."""
    config = {
        "decoding.beam_size": 5,
        "decoding.length_normalization": "power",
        "decoding.length_penalty": 1.0,
        "decoding.max_extra_tokens": _MAX_EXTRA_TOKENS,
        "decoding.min_tokens": 1,
    }
    if most := model.get("max_positions"):
        extra = min(_MAX_EXTRA_TOKENS, most // 2)
        config["decoding.max_extra_tokens"] = extra
        config["decoding.max_source_length"] = max(most - extra, 2)
        config["data.max_length"] = min(256, most)
    return config


def _notes_of(
    arguments: Mapping[str, Any], source: Source, model: Mapping[str, Any]
) -> tuple[str, ...]:
    notes = [
        "fairseq ends an output after 200 tokens, whatever the length of its source; "
        "here it may have 200 tokens more than its source.",
        "fairseq ends a search with the first hypotheses that are finished, as many as "
        "its beam; here it goes on until no other can overtake them.",
    ]
    if any(arguments.get(f"{stack}_layerdrop") for stack in _STACKS):
        notes.append(
            "The model was trained with LayerDrop, which further training here lacks."
        )
    if model.get("positions") == "learned":
        notes.append(
            f"Sources and outputs share a limit of {model['max_positions']:,} tokens, "
            "the number of learned positions."
        )
    return tuple(notes)
