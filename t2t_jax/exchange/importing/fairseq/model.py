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
from t2t_jax.exchange.importing.imported import (
    ImportedModel,
    ImportOptions,
    dropouts_of,
    length_limits,
    sizes_of,
)
from t2t_jax.exchange.importing.layout import (
    Array,
    ParameterTree,
    Source,
    our_ids,
    torch_layers,
)
from t2t_jax.exchange.readers.torch_file import read_torch_file
from t2t_jax.types import Params

_STACKS = ("encoder", "decoder")
_CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt", "model.pt")
_FIRST_BYTES = (b"PK\x03\x04", b"\x80\x02\x8a\x0a")  # of a zip; of a pickle of magic
_LAYER_NORM_EPSILON = 1e-5
_FIRST_POSITION = 2  # after that of pad
_LANGUAGE = re.compile(r"[\w-]{1,40}")  # a part of file names
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
_SIZES = {
    "d_model": "encoder_embed_dim",
    "d_ff": "encoder_ffn_embed_dim",
    "num_heads": "encoder_attention_heads",
    "num_layers": "encoder_layers",
    "num_decoder_layers": "decoder_layers",
}
_SEARCH = {
    "decoding.beam_size": 5,
    "decoding.length_normalization": "power",
    "decoding.length_penalty": 1.0,
    "decoding.min_tokens": 1,
}
"""The defaults of fairseq's decoding."""


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
        config=config | _SEARCH | length_limits(model),
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
    config = {
        **sizes_of(arguments, _SIZES, name=name),
        **dropouts_of(arguments, _DROPOUTS),
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


def _tying_of(arguments: Mapping[str, Any]) -> str:
    if arguments.get("share_all_embeddings"):
        return "all"
    return "decoder" if arguments.get("share_decoder_input_output_embed") else "none"


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
    tree = ParameterTree(config)
    tree.add_stacks(torch_layers(source))
    if config.get("positions") == "learned":
        _add_positions(source, tree, config)
    _add_matrices(source, tree, config, sizes=sizes)
    source.check_all_taken(ignored=_IGNORED)
    return tree.params


def _add_positions(
    source: Source, tree: ParameterTree, config: Mapping[str, Any]
) -> None:
    """Adds the learned positions, which fairseq does not scale."""
    scale = np.float32(1)
    if config["scale_embeddings"]:
        scale /= np.sqrt(np.float32(config["d_model"]))
    rows = config["max_positions"] + config["first_position"]
    for stack in _STACKS:
        name = f"{stack}.embed_positions.weight"
        size = source.shape(name)[:1]
        table = source.take(name, *size, config["d_model"])
        tree.add_table(f"{stack}/positions/learned", table[:rows] * scale)


def _add_matrices(
    source: Source,
    tree: ParameterTree,
    config: Mapping[str, Any],
    *,
    sizes: tuple[int, int],
) -> None:
    """Adds the vocabulary matrices."""
    tables = [
        _matrix(source, f"{stack}.embed_tokens.weight", size, config["d_model"])
        for stack, size in zip(_STACKS, sizes, strict=True)
    ]
    tying, target_size = config["tying"], sizes[1]
    # A matrix that is shared may be there once for each of its uses.
    outputs = [
        _matrix(source, name, target_size, config["d_model"])
        for name in ("decoder.output_projection.weight", "decoder.embed_out")
        if name in source
    ]
    shared = {"all": [*tables, *outputs], "decoder": [tables[1], *outputs]}
    for other in shared.get(tying, outputs)[1:]:
        if not np.array_equal(other, shared.get(tying, outputs)[0]):
            raise DataError(
                f"{source.name}: its matrices of embeddings and logits must "
                f"be equal by its arguments (tying={tying}), and differ. Pass "
                "another checkpoint."
            )
    if tying == "all":
        _add_table(tree, "embedding", tables[0])
        return
    _add_table(tree, "source_embedding", tables[0])
    _add_table(tree, "target_embedding", tables[1])
    if tying == "none":
        if not outputs:
            source.shape("decoder.output_projection.weight")
        _add_table(tree, "pre_softmax", outputs[0])


def _add_table(tree: ParameterTree, path: str, rows: Array) -> None:
    ids = our_ids(len(rows), pad=1, bos=0, eos=2, unk=3)
    tree.add_table(path, rows, ids=ids)


def _matrix(source: Source, name: str, size: int, d_model: int) -> Array:
    rows = (*source.shape(name), 0)[0]
    if rows != size:
        raise DataError(
            f"{source.name}: {name} has {rows:,} rows, and the "
            f"dictionary {size:,} pieces, the four special ones included. Pass "
            "the dictionaries of this model."
        )
    return source.take(name, size, d_model)
