"""Imports Transformers of tensor2tensor: a checkpoint of TensorFlow and its hparams.

All versions of the hyper-parameters `transformer_*` are read; what would be another
model is refused by the name of the hyper-parameter. Vocabularies are of subwords, or of
tokens by line.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.imported import (
    ImportedModel,
    ImportOptions,
    Settings,
    allowed,
)
from t2t_jax.exchange.importing.layout import (
    MATRICES,
    Array,
    Source,
    part_names,
    read_params,
)
from t2t_jax.exchange.importing.vocabularies import (
    FoundVocabularies,
    Ids,
    t2t_vocabularies,
)
from t2t_jax.exchange.readers.tensorflow_checkpoint import read_tensorflow_checkpoint
from t2t_jax.files import read_json_object, read_limited

_Tensors: TypeAlias = Mapping[str, npt.NDArray[Any]]

_HPARAMS = "hparams.json"
_SPACE = "target_space_id"
_INDEX = ".index"
_ADVICE = "Pass the directory of a training of tensor2tensor."

# Hyper-parameters whose other values would be another model; the first is the default.
_REQUIRED = allowed(
    ("attention_variables_3d proximity_bias symbol_modality_skip_top", (False,)),
    ("unidirectional_encoder", (False,)),
    ("hard_attention_k max_relative_position num_area_layers", (0,)),
    ("causal_decoder_self_attention", (True,)),
    ("ffn_layer", ("dense_relu_dense", "conv_hidden_relu")),
    ("multiply_embedding_mode", ("sqrt_depth", "none", "")),
    ("nbr_decoder_problems", (1,)),
    ("norm_type", ("layer",)),
    ("pos", ("timing",)),
    ("prepend_mode", ("none",)),
    ("self_attention_type", ("dot_product",)),
)
_NORM_POSITIONS = {("", "an"): "post", ("n", "a"): "pre"}
_DROPOUTS = ("layer_prepostprocess_dropout", "attention_dropout", "relu_dropout")
# Hyper-parameters of which 0 stands for the default.
_SIZES = (
    *("hidden_size", "filter_size", "num_heads", "num_hidden_layers"),
    *("num_encoder_layers", "num_decoder_layers", "vocab_divisor"),
    *("attention_key_channels", "attention_value_channels"),
)

# State of the optimizer, and statistics.
_IGNORED = re.compile(
    r"(training|OptimizeLoss|losses_avg|train_stats)/|(global_step|beta\d_power)$"
)

_FIRST_KERNEL = "encoder/layer_0/self_attention/multihead_attention/q/kernel"
_NORM_SCOPES = ("layer_prepostprocess", "layer_postprocess", "layer_prepostprocess_1")
_MATRIX = re.compile(r"(?:.*/)?symbol_modality_(\d{1,9})_\d+/\w+/weights_\d+")
_PARTS = part_names(
    "self_attention/q self_attention/k self_attention/v self_attention/output_transform"
    " self_attention encdec_attention/q encdec_attention/k encdec_attention/v"
    " encdec_attention/output_transform encdec_attention ffn/conv1 ffn/conv2 ffn"
)
# Rows of the embedding of target spaces.
_TARGET_SPACES = 32


def is_t2t(path: Path) -> bool:
    """Returns whether a path is a checkpoint of TensorFlow, or a directory with one."""
    files = path.glob(f"*{_INDEX}") if path.is_dir() else [path]
    # Files of other programs may end in `.index`, too.
    return any(
        _index_of(prefix).is_file()
        and (prefix.with_name(_HPARAMS).is_file() or len(_files_of(prefix)) > 1)
        for prefix in map(_prefix_of_file, files)
    )


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
    model = _config_of(hparams)
    tensors = read_tensorflow_checkpoint(prefix)
    kept = {name: one for name, one in tensors.items() if not _IGNORED.match(name)}
    source = Source(kept, name=str(prefix))
    sizes, divisor = _matrix_sizes(source), hparams.size("vocab_divisor")
    found = t2t_vocabularies(
        prefix.parent, given=options.vocabularies, sizes=sizes, divisor=divisor
    )
    body = _body_of(source)

    def take(path: str, kind: str, *shape: int) -> Array:
        return source.take(_tensor_name(source, body, path, kind), *shape)

    constant, notes = _target_space(source, body, tensors, hparams)
    if constant is not None and model["scale_embeddings"]:
        constant = constant / np.sqrt(np.float32(model["d_model"]))
    tables = _matrices(source, body, found, constant=constant)
    (model["tying"],) = (name for name in MATRICES if MATRICES[name] == tuple(tables))
    no_bias = np.zeros(len([*tables.values()][-1]), np.float32)
    return ImportedModel(
        model=model,
        search={},
        params=read_params(source, model, take, tables, found.ids, bias=no_bias),
        vocabularies=found.pair,
        files=(prefix.with_name(_HPARAMS), *_files_of(prefix), *found.files),
        notes=(*found.notes, *notes),
    )


def _checkpoint_of(directory: Path) -> Path:
    """Returns the checkpoint that `checkpoint` names, or that of most steps."""
    state = directory / "checkpoint"
    if state.is_file():
        content = read_limited(state, max_bytes=1 << 20, advice=_ADVICE)
        named = re.search(rb'^model_checkpoint_path: *"([^"\n\0]+)"', content, re.M)
        # It may be a path on the machine of the training.
        name = Path(named[1].decode(errors="replace")).name if named else ""
        if name and _index_of(directory / name).is_file():
            return directory / name
    prefixes = list(map(_prefix_of_file, directory.glob(f"*{_INDEX}")))
    if not prefixes:
        raise InputMissingError(
            f"{directory} has no checkpoint of TensorFlow, *{_INDEX}. {_ADVICE}"
        )

    def step(prefix: Path) -> tuple[int, Path]:
        found = re.search(r"(?:^|-)([0-9]{1,18})$", prefix.name)
        return int(found[1]) if found else -1, prefix

    return max(prefixes, key=step)


def _prefix_of_file(path: Path) -> Path:
    name = re.sub(r"\.(index|data-\d{5}-of-\d{5})$", "", path.name)
    return path.with_name(name) if name else path


def _index_of(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}{_INDEX}")


def _files_of(prefix: Path) -> list[Path]:
    data = prefix.parent.glob(f"{glob.escape(prefix.name)}.data-*-of-*")
    return [_index_of(prefix), *sorted(data)]


def _read_hparams(path: Path) -> Settings:
    if not path.is_file():
        raise InputMissingError(
            f"{path}: no such file. It has what the tensors do not show, such as the "
            "number of heads. Copy it from the directory of the training, or write it: "
            '{"hidden_size": 512, "filter_size": 2048, "num_heads": 8, '
            '"num_hidden_layers": 6, "layer_preprocess_sequence": "n", '
            '"layer_postprocess_sequence": "da"} are those of transformer_base.'
        )
    found = read_json_object(path, advice=_ADVICE)
    values = {key: one for key, one in found.items() if one or key not in _SIZES}
    layers, width = values.get("num_hidden_layers"), values.get("hidden_size")
    defaults = {
        **dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), layers),
        **dict.fromkeys(("attention_key_channels", "attention_value_channels"), width),
        "vocab_divisor": 1,
    }
    advice = "Pass the hparams.json of this model."
    return Settings({**defaults, **values}, name=path, advice=advice)


def _config_of(hparams: Settings) -> dict[str, Any]:
    """Returns `config.model`, by key, but for the tying."""
    hparams.require(_REQUIRED)
    # Dropout has no effect on outputs.
    places = ("preprocess", "postprocess")
    texts = (short_repr(hparams.get(f"layer_{one}_sequence"))[1:-1] for one in places)
    norms = tuple(re.sub("^none$|d| ", "", text) for text in texts)
    if norms not in _NORM_POSITIONS:
        hparams.refuse(
            "layer_postprocess_sequence", "'da' after 'n', 'dan' after 'none'"
        )
    d_model, heads = hparams.size("hidden_size"), hparams.size("num_heads")
    keys = hparams.size("attention_key_channels")
    values = hparams.size("attention_value_channels")
    if d_model % 2 or keys % heads or values % heads:
        hparams.refuse(
            "num_heads",
            f"divisors of the channels of keys ({keys}) and values ({values}), with an "
            f"even hidden_size, not {d_model}",
        )
    return {
        "d_model": d_model,
        "d_ff": hparams.size("filter_size"),
        "num_heads": heads,
        "d_k": keys // heads,
        "d_v": values // heads,
        "num_layers": hparams.size("num_encoder_layers"),
        "num_decoder_layers": hparams.size("num_decoder_layers"),
        **hparams.dropouts(*_DROPOUTS),
        "norm_position": _NORM_POSITIONS[norms],
        "output_bias": True,
        "position_rates": "tensor2tensor",
        "scale_embeddings": (
            hparams.get("multiply_embedding_mode", "sqrt_depth") == "sqrt_depth"
        ),
        "start": "zero",
        "layer_norm_epsilon": hparams.number("norm_epsilon", default=1e-6, most=1),
    }


def _body_of(source: Source) -> str:
    """Returns with what the names of both stacks begin, such as `transformer/body/`."""
    found = (one for one in source if one.endswith(_FIRST_KERNEL))
    roots = [name.removesuffix(_FIRST_KERNEL) for name in found]
    if len(roots) != 1:
        raise DataError(
            f"{source.name} must have one tensor …/{_FIRST_KERNEL}, and has "
            f"{len(roots)}. Pass a Transformer of tensor2tensor; those of its "
            "first versions have other names, and are not supported."
        )
    return roots[0]


def _tensor_name(source: Source, body: str, path: str, kind: str) -> str:
    """Returns the name of the tensor of a part; see `layout.Take`."""
    stack, layer, *part = path.split("/")
    within = f"{stack}/{layer}/{_PARTS['/'.join(part)]}" if part else stack
    if not path.endswith("_norm"):
        inner = within.replace("_attention/", "_attention/multihead_attention/")
        return f"{body}{inner}/{kind}"
    names = [
        f"{body}{within}/{scope}/layer_norm/layer_norm_{kind}" for scope in _NORM_SCOPES
    ]
    return next((name for name in names if name in source), names[0])


def _target_space(
    source: Source, body: str, tensors: _Tensors, hparams: Settings
) -> tuple[Array | None, tuple[str, ...]]:
    """Returns the vector that is added to every input of the encoder, and a note."""
    name = f"{body}target_space_embedding/kernel"
    if name not in source:
        return None, ()
    space, trained = hparams.get(_SPACE), _trained_target_spaces(tensors)
    if space is None and len(trained) == 1:
        space = trained[0]
    if type(space) is not int or not 0 <= space < _TARGET_SPACES:
        raise DataError(
            f"{source.name}: the optimizer's state shows {len(trained)} trained target "
            f"spaces, not one, and {_SPACE}={short_repr(space)} is not a number "
            f"below {_TARGET_SPACES}. Add {_SPACE} to {_HPARAMS}: that of the problem, "
            "by default 0 since tensor2tensor 1.5.3."
        )
    width = (*source.shape(name), 0)[1]
    note = (
        f"The vector of target space {space} is added to the source's embeddings, "
        "which therefore are a matrix of their own."
    )
    return source.take(name, _TARGET_SPACES, width)[space], (note,)


def _trained_target_spaces(tensors: _Tensors) -> list[int]:
    """Returns which rows of the embedding of target spaces got a gradient.

    The rows of the others are as they were initialized, and those of the optimizer's
    state are zero.
    """
    rows: set[int] = set()
    for name, tensor in tensors.items():
        if "/target_space_embedding/kernel/" in name and tensor.ndim == 2:
            rows.update(np.flatnonzero(tensor.any(axis=1)).tolist())
    return sorted(rows)


def _matrix_sizes(names: Iterable[str]) -> set[int]:
    """Returns the numbers of rows of the vocabulary matrices, from their names."""
    return {int(found[1]) for name in names if (found := _MATRIX.fullmatch(name))}


def _matrices(
    source: Source, body: str, found: FoundVocabularies, *, constant: Array | None
) -> dict[str, Array]:
    """Reads the vocabulary matrices [V, D], by the paths of parameters.

    Each may be in several shards, and serve several purposes.
    """
    width = source.shape(f"{body}{_FIRST_KERNEL}")[0]

    def read(ids: Ids, *names: str) -> tuple[str, Array]:
        size = sum(one is not None for one in ids)
        modality = f"{body.removesuffix('body/')}symbol_modality_{size}_{width}"
        scopes = [f"{modality}/{name}" for name in names]
        scope = next((one for one in scopes if f"{one}/weights_0" in source), "")
        if not scope:
            raise DataError(
                f"{source.name} has no tensor {scopes[0]}/weights_0, of {size:,} "
                f"subwords, but matrices of {sorted(_matrix_sizes(source))}. "
                "Pass the vocabularies of this model."
            )
        shards = sum(name.startswith(f"{scope}/weights_") for name in source)
        rows = [size // shards + (n < size % shards) for n in range(shards)]
        named = ((f"{scope}/weights_{n}", length) for n, length in enumerate(rows))
        return scope, np.concatenate([source.take(*one, width) for one in named])

    scope, table = read(found.ids[0], "input_emb", "shared")
    target_scope, target = read(found.ids[1], "target_emb", "shared")
    output_scope, output = read(found.ids[1], "softmax", "shared")
    is_tied = scope == target_scope == output_scope and found.pair.shared
    if is_tied and constant is None:
        return {"embedding": target}
    if constant is not None:
        table = table + constant
    tables = {"source_embedding": table, "target_embedding": target}
    return tables if output_scope == target_scope else {**tables, "pre_softmax": output}
