"""Imports Transformers of tensor2tensor: a checkpoint of TensorFlow and its hparams.

All versions of the hyper-parameters `transformer_*` are read; what would be another
model is refused by the name of the hyper-parameter.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.imported import (
    ImportedModel,
    ImportOptions,
    dropouts_of,
    require_values,
)
from t2t_jax.exchange.importing.layout import Array, Source
from t2t_jax.exchange.importing.tensor2tensor.vocabulary import (
    FoundVocabularies,
    find_vocabularies,
)
from t2t_jax.exchange.importing.tensor2tensor.weights import (
    TARGET_SPACES,
    T2TReader,
    matrix_sizes,
    model_tensors,
    trained_target_spaces,
)
from t2t_jax.exchange.readers.tensorflow_checkpoint import read_tensorflow_checkpoint
from t2t_jax.files import read_json_object, read_limited
from t2t_jax.model.config import is_number, is_size

_HPARAMS = "hparams.json"
_STATE = "checkpoint"
_SPACE = "target_space_id"
_INDEX = ".index"
_MAX_STATE_BYTES = 1 << 20
_MAX_SHOWN = 100  # characters of a value
_ADVICE = "Pass the directory of a training of tensor2tensor."

# Hyper-parameters whose other values would be another model; the first is the default.
_REQUIRED: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        (
            *("attention_variables_3d", "proximity_bias", "symbol_modality_skip_top"),
            "unidirectional_encoder",
        ),
        (False,),
    ),
    **dict.fromkeys(
        ("hard_attention_k", "max_relative_position", "num_area_layers"), (0,)
    ),
    "causal_decoder_self_attention": (True,),
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "multiply_embedding_mode": ("sqrt_depth", "none", ""),
    "nbr_decoder_problems": (1,),
    "norm_type": ("layer",),
    "pos": ("timing",),
    "prepend_mode": ("none",),
    "self_attention_type": ("dot_product",),
}
_NORM_POSITIONS = {("", "an"): "post", ("n", "a"): "pre"}
_DROPOUTS = {
    "layer_prepostprocess_dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "relu_dropout": "relu_dropout",
}


def is_t2t(path: Path) -> bool:
    """Returns whether a path is a checkpoint of TensorFlow, or a directory with one."""
    if path.is_dir():
        return _has_checkpoint(path, {_prefix_of_file(p) for p in _indices_in(path)})
    prefix = _prefix_of_file(path)
    return _index_of(prefix).is_file() and _has_checkpoint(prefix.parent, {prefix})


def _has_checkpoint(directory: Path, prefixes: Set[Path]) -> bool:
    """Returns whether data or hyper-parameters lie beside one of the indices.

    Files of other programs may end in `.index`, too.
    """
    if not prefixes:
        return False
    data = directory.glob("*.data-*-of-*")
    return (directory / _HPARAMS).is_file() or any(
        _prefix_of_file(path) in prefixes for path in data
    )


def _indices_in(directory: Path) -> Iterable[Path]:
    return directory.glob(f"*{_INDEX}")


def read_t2t(path: Path, options: ImportOptions) -> ImportedModel:
    """Reads a Transformer of tensor2tensor.

    Args:
      path: a directory with `hparams.json` and checkpoints, of which the one that the
        file `checkpoint` names is read, or that of most steps; or a checkpoint with
        `hparams.json` beside it, its path with or without `.index`.

    Raises:
      DataError: a file is damaged, or the model of an unsupported kind.
      InputMissingError: a file is missing.
      UserError: a package is not installed.
    """
    prefix = _checkpoint_of(path) if path.is_dir() else _prefix_of_file(path)
    hparams = _read_hparams(prefix.with_name(_HPARAMS))
    model = _config_of(hparams, name=str(prefix.with_name(_HPARAMS)))
    tensors = read_tensorflow_checkpoint(prefix)
    source = Source(model_tensors(tensors), name=str(prefix))
    reader = T2TReader(source, model)
    found = find_vocabularies(
        prefix.parent,
        given=options.vocabularies,
        sizes=matrix_sizes(source),
        divisor=_size(hparams, "vocab_divisor", 1, name=str(prefix)),
    )
    reader.read_stacks()
    constant, notes = _target_space(reader, tensors, hparams, name=str(prefix))
    tables = _matrices(reader, model, found, constant=constant)
    model["tying"], output = _TYINGS[len(tables)]
    ids = {path: found.ids[path != "source_embedding"] for path in tables}
    params = reader.finish(tables, ids, output=output)
    vocabularies = found.vocabularies
    config = {f"model.{key}": value for key, value in model.items()}
    config["vocabulary.size"] = vocabularies.target.size
    config["vocabulary.source_size"] = (
        0 if vocabularies.shared else vocabularies.source.size
    )
    files = (prefix.with_name(_HPARAMS), *_files_of(prefix), *found.files)
    notes = (*found.notes, *notes)
    return ImportedModel(config, params, vocabularies, files, notes)


_TYINGS = {
    1: ("all", "embedding"),
    2: ("decoder", "target_embedding"),
    3: ("none", "pre_softmax"),
}
"""By the number of matrices: the tying, and the matrix of the logits."""


def _checkpoint_of(directory: Path) -> Path:
    """Returns the checkpoint that `checkpoint` names, or that of most steps."""
    state = directory / _STATE
    if state.is_file():
        content = read_limited(state, max_bytes=_MAX_STATE_BYTES, advice=_ADVICE)
        named = re.search(rb'^model_checkpoint_path: *"([^"\n\0]+)"', content, re.M)
        # It may be a path on the machine of the training.
        name = Path(named[1].decode(errors="replace")).name if named else ""
        if name and _index_of(directory / name).is_file():
            return directory / name
    found = [_prefix_of_file(path) for path in _indices_in(directory)]
    if not found:
        raise InputMissingError(
            f"{directory} has no checkpoint of TensorFlow, *{_INDEX}. {_ADVICE}"
        )
    return max(found, key=lambda prefix: (_step_of(prefix), prefix))


def _step_of(prefix: Path) -> int:
    number = prefix.name.rpartition("-")[2]
    return int(number) if re.fullmatch(r"[0-9]{1,18}", number) else -1


def _prefix_of_file(path: Path) -> Path:
    name = re.sub(r"\.(index|data-\d{5}-of-\d{5})$", "", path.name)
    return path.with_name(name) if name else path


def _index_of(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}{_INDEX}")


def _files_of(prefix: Path) -> list[Path]:
    data = prefix.parent.glob(f"{glob.escape(prefix.name)}.data-*-of-*")
    return [_index_of(prefix), *sorted(data)]


def _read_hparams(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputMissingError(
            f"{path}: no such file. It has what the tensors do not show, such as the "
            "number of heads. Copy it from the directory of the training, or write it: "
            '{"hidden_size": 512, "filter_size": 2048, "num_heads": 8, '
            '"num_hidden_layers": 6, "layer_preprocess_sequence": "n", '
            '"layer_postprocess_sequence": "da"} are those of transformer_base.'
        )
    return read_json_object(path, advice=_ADVICE)


def _config_of(hparams: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """Returns `config.model`, by key, but for the tying."""
    require_values(hparams, _REQUIRED, name=name)
    around = tuple(
        str(hparams.get(f"layer_{place}_sequence"))[:_MAX_SHOWN]
        for place in ("preprocess", "postprocess")
    )
    # Dropout has no effect on outputs.
    norms = tuple(re.sub("^none$|d| ", "", sequence) for sequence in around)
    if norms not in _NORM_POSITIONS:
        raise DataError(
            f"{name}: models with layer_preprocess_sequence={around[0]!r} and "
            f"layer_postprocess_sequence={around[1]!r} are not supported, only 'n' and "
            "'da', or 'none' and 'dan'."
        )
    epsilon = hparams.get("norm_epsilon", 1e-6)
    if not is_number(epsilon) or not 0 < epsilon < 1:
        raise DataError(f"{name}: norm_epsilon={short_repr(epsilon)} is not one.")
    return {
        **_sizes_of(hparams, name=name),
        **dropouts_of(hparams, _DROPOUTS),
        "norm_position": _NORM_POSITIONS[norms],
        "output_bias": True,
        "position_rates": "tensor2tensor",
        "scale_embeddings": (
            hparams.get("multiply_embedding_mode", "sqrt_depth") == "sqrt_depth"
        ),
        "start": "zero",
        "layer_norm_epsilon": float(epsilon),
    }


def _sizes_of(hparams: Mapping[str, Any], *, name: str) -> dict[str, int]:
    def size(key: str, default: Any = None) -> int:
        return _size(hparams, key, default, name=name)

    d_model, heads = size("hidden_size"), size("num_heads")
    layers = hparams.get("num_hidden_layers")
    keys = size("attention_key_channels", d_model)
    values = size("attention_value_channels", d_model)
    if d_model % 2 or keys % heads or values % heads:
        raise DataError(
            f"{name}: hidden_size={d_model} must be even, and the channels of keys "
            f"({keys}) and values ({values}) divisible by num_heads={heads}. Pass the "
            "hparams.json of this model."
        )
    return {
        "d_model": d_model,
        "d_ff": size("filter_size"),
        "num_heads": heads,
        "d_k": keys // heads,
        "d_v": values // heads,
        "num_layers": size("num_encoder_layers", layers),
        "num_decoder_layers": size("num_decoder_layers", layers),
    }


def _size(hparams: Mapping[str, Any], key: str, default: Any, *, name: str) -> int:
    """Returns a size; 0 stands for the default, as in tensor2tensor."""
    value = hparams.get(key) or default
    if not is_size(value):
        raise DataError(
            f"{name}: {key}={short_repr(value)} is not a size of a model. Pass the "
            "hparams.json of this model."
        )
    return value  # type: ignore[no-any-return]


def _target_space(
    reader: T2TReader,
    tensors: Mapping[str, npt.NDArray[Any]],
    hparams: Mapping[str, Any],
    *,
    name: str,
) -> tuple[Array | None, tuple[str, ...]]:
    """Returns the vector that is added to every input of the encoder, and a note."""
    if not reader.has_target_spaces:
        return None, ()
    space, trained = hparams.get(_SPACE), trained_target_spaces(tensors)
    if space is None and len(trained) == 1:
        space = trained[0]
    if type(space) is not int or not 0 <= space < TARGET_SPACES:
        raise DataError(
            f"{name}: the optimizer's state shows {len(trained)} trained target "
            f"spaces, not one, and {_SPACE}={short_repr(space)} is not a number "
            f"below {TARGET_SPACES}. Add {_SPACE} to {_HPARAMS}: that of the problem, "
            "by default 0 since tensor2tensor 1.5.3."
        )
    note = (
        f"The vector of target space {space} is added to the source's embeddings, "
        "which therefore are a matrix of their own."
    )
    return reader.read_target_space(space), (note,)


def _matrices(
    reader: T2TReader,
    model: Mapping[str, Any],
    found: FoundVocabularies,
    *,
    constant: Array | None,
) -> dict[str, Array]:
    """Returns the vocabulary matrices [V, D], by the paths of parameters."""
    of_source, of_target = found.rows
    scope, source = reader.read_matrix(of_source, ("input_emb", "shared"))
    target_scope, target = reader.read_matrix(of_target, ("target_emb", "shared"))
    output_scope, output = reader.read_matrix(of_target, ("softmax", "shared"))
    is_tied = scope == target_scope == output_scope and found.vocabularies.shared
    if is_tied and constant is None:
        return {"embedding": target}
    if constant is not None:
        scale = np.sqrt(model["d_model"]) if model["scale_embeddings"] else 1
        source = source + constant / np.float32(scale)
    tables = {"source_embedding": source, "target_embedding": target}
    return tables if output_scope == target_scope else {**tables, "pre_softmax": output}
