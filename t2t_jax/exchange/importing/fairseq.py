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
from t2t_jax.exchange.importing.imported import (
    ImportedModel,
    ImportOptions,
    Settings,
    allowed,
    length_limits,
)
from t2t_jax.exchange.importing.layout import (
    Source,
    read_params,
    take_matrices,
    torch_ignored,
    torch_layers,
)
from t2t_jax.exchange.importing.vocabularies import ADVICE, Ids, fairseq_vocabularies
from t2t_jax.exchange.readers.torch_file import read_torch_file
from t2t_jax.types import Params

_STACKS = ("encoder", "decoder")
_CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt", "model.pt")
_FIRST_BYTES = (b"PK\x03\x04", b"\x80\x02\x8a\x0a")  # of a zip; of a pickle of magic
_FIRST_POSITION = 2  # after that of pad
_LANGUAGE = re.compile(r"[\w-]{1,40}")  # a part of file names
_MAX_SHOWN = 100  # characters of an argument

# Arguments that make another model if they are set.
_UNSUPPORTED = (
    "adaptive_input adaptive_softmax_cutoff base_layers char_inputs "
    "character_embeddings cross_self_attention decoder_langtok decoder_layers_to_keep "
    "decoder_xformers_att_config encoder_langtok encoder_layers_to_keep "
    "encoder_xformers_att_config layernorm_embedding merge_src_tgt_embed "
    "no_cross_attention no_token_positional_embeddings quant_noise_pq "
    "quant_noise_scalar tie_adaptive_weights"
)
_EQUAL_IN_BOTH = "attention_heads embed_dim ffn_embed_dim learned_pos normalize_before"
_SIZES = (
    "encoder_embed_dim encoder_attention_heads encoder_ffn_embed_dim encoder_layers "
    "decoder_layers"
).split()
# The defaults of fairseq's decoding.
_SEARCH = {
    "decoding.beam_size": 5,
    "decoding.length_normalization": "power",
    "decoding.length_penalty": 1.0,
    "decoding.min_tokens": 1,
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
    state = read_torch_file(checkpoint)
    state = state if isinstance(state, dict) else {}
    settings = _settings_of(state, name=checkpoint)
    source = Source(state.get("model"), name=str(checkpoint))
    model = _config_of(settings, source)
    codes = (str(settings.get(f"{side}_lang", "")) for side in ("source", "target"))
    languages = tuple(filter(_LANGUAGE.fullmatch, codes))
    found = fairseq_vocabularies(
        checkpoint.parent, languages=languages, given=options.vocabularies
    )
    if model["tying"] == "all" and not found.pair.shared:
        raise DataError(
            f"{checkpoint} has one matrix for both languages, but their dictionaries "
            f"differ. {ADVICE}"
        )
    return ImportedModel(
        model=model,
        search=_SEARCH | length_limits(model),
        params=_weights(source, model, found.ids),
        vocabularies=found.pair,
        files=(checkpoint, *found.files),
        notes=(*found.notes, *_notes_of(settings, model)),
        languages=(languages[0], languages[1]) if len(languages) == 2 else None,
    )


def _checkpoint_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    known = [file for name in _CHECKPOINTS if (file := path / name).is_file()]
    if len(found := known[:1] or sorted(path.glob("*.pt"))) != 1:
        raise DataError(
            f"{path} must have a {', '.join(_CHECKPOINTS)} or a single other .pt file, "
            f"and has {len(found)}. Pass the path of a checkpoint."
        )
    return found[0]


def _settings_of(state: Mapping[Any, Any], *, name: Path) -> Settings:
    """Returns the arguments, in one level."""
    config = state.get("cfg")
    sections = config if isinstance(config, dict) else {}
    parts = _flat(sections.get("task")) | _flat(sections.get("model"))
    if not (flat := _flat(state.get("args")) or parts):
        raise DataError(
            f"{name} has no arguments of a model, neither 'args' nor 'cfg'. Pass a "
            "checkpoint that fairseq has saved."
        )
    return Settings(flat, name=name)


def _flat(section: Any) -> dict[str, Any]:
    """Returns the values of a section but None; those of `encoder` as `encoder_…`."""
    flat: dict[str, Any] = {}
    for key, value in section.items() if isinstance(section, dict) else ():
        if isinstance(value, dict) and key in (*_STACKS, "quant_noise"):
            flat |= {f"{key}_{name}": _plain(each) for name, each in value.items()}
        elif isinstance(key, str):
            flat[key] = _plain(value)
    return {key: value for key, value in flat.items() if value is not None}


def _plain(value: Any) -> str | float | None:
    """Returns a value that can be compared in little time."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:_MAX_SHOWN]
    is_empty = isinstance(value, list | tuple | dict) and not value
    return None if is_empty else short_repr(value)


def _config_of(settings: Settings, source: Source) -> dict[str, Any]:
    """Returns `config.model`, by key."""
    settings.require(allowed((_UNSUPPORTED, (None, False, ""))))
    settings.require_equal(*_EQUAL_IN_BOTH.split())
    sizes = settings.sizes(*_SIZES)
    width = (sizes["d_model"], None)
    settings.require(dict.fromkeys(("decoder_input_dim", "decoder_output_dim"), width))
    tied = "decoder" if settings.get("share_decoder_input_output_embed") else "none"
    config = {
        **sizes,
        **settings.dropouts("dropout", "attention_dropout", "activation_dropout"),
        "norm_position": "pre" if settings.get("encoder_normalize_before") else "post",
        "activation": settings.choice(
            "activation_fn", ("relu", "gelu"), default="relu"
        ),
        "attention_biases": True,
        "position_rates": "tensor2tensor",
        "first_position": _FIRST_POSITION,
        "start": "eos",
        "scale_embeddings": not settings.get("no_scale_embedding"),
        "tying": "all" if settings.get("share_all_embeddings") else tied,
        "layer_norm_epsilon": 1e-5,
    }
    if settings.get("encoder_learned_pos"):
        shapes = [source.shape(f"{s}.embed_positions.weight") for s in _STACKS]
        rows = min(shape[0] if shape else 0 for shape in shapes)
        config["positions"] = "learned"
        config["max_positions"] = max(rows - _FIRST_POSITION, 1)
    return config


def _notes_of(settings: Settings, model: Mapping[str, Any]) -> tuple[str, ...]:
    notes = [
        "fairseq ends an output after 200 tokens, whatever the length of its source; "
        "here it may have 200 tokens more than its source.",
        "fairseq ends a search with the first hypotheses that are finished, as many as "
        "its beam; here it goes on until no other can overtake them.",
    ]
    if any(settings.get(f"{stack}_layerdrop") for stack in _STACKS):
        notes.append("Trained with LayerDrop, which further training here lacks.")
    if rows := model.get("max_positions"):
        notes.append(f"Sources and outputs have a limit of {rows:,} tokens.")
    return tuple(notes)


_OUTPUTS = ["decoder.output_projection.weight", "decoder.embed_out"]


def _weights(source: Source, config: Mapping[str, Any], ids: tuple[Ids, Ids]) -> Params:
    """Reads the parameters of a `Transformer`."""
    sizes, positions = (len(ids[0]), len(ids[1])), {}
    inputs = [f"{stack}.embed_tokens.weight" for stack in _STACKS]
    for name, size in zip(inputs, sizes, strict=True):
        if (rows := (*source.shape(name), 0)[0]) != size:
            raise DataError(
                f"{source.name}: {name} has {rows:,} rows, and the dictionary {size:,} "
                f"pieces, the four special ones included. {ADVICE}"
            )
    tables = take_matrices(source, config, sizes, inputs=inputs, outputs=_OUTPUTS)
    if config.get("positions") == "learned":
        width = config["d_model"]
        # fairseq does not scale them.
        scale = np.sqrt(np.float32(width if config["scale_embeddings"] else 1))
        rows = config["max_positions"] + config["first_position"]
        for stack in _STACKS:
            name = f"{stack}.embed_positions.weight"
            table = source.take(name, *source.shape(name)[:1], width)
            positions[stack] = table[:rows] * (1 / scale)
    take, ignored = torch_layers(source), torch_ignored()
    return read_params(
        source, config, take, tables, ids, positions=positions, ignored=ignored
    )
