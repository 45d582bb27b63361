"""Imports models of Marian: `model.npz`, with the vocabularies beside it.

Of its options, `special:model.yml`, which is padded with NULs, everything that changes
the outputs is read or refused. Vocabularies are SentencePiece models (`.spm`), or lists
of pieces (`.yml`, `.json`, `.txt`), as of OPUS-MT: there `source.spm` and `target.spm`
split the text, and a list gives the pieces their ids.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.imported import (
    ImportedModel,
    ImportOptions,
    Settings,
    allowed,
    length_limits,
)
from t2t_jax.exchange.importing.layout import (
    Array,
    Source,
    part_names,
    read_params,
    take_matrices,
)
from t2t_jax.exchange.importing.vocabularies import marian_vocabularies
from t2t_jax.exchange.readers.archive import Archive, read_npz
from t2t_jax.exchange.readers.yaml_file import MAX_YAML_BYTES, parse_yaml
from t2t_jax.files import damage_as_data_error, read_limited
from t2t_jax.model.config import is_size

_OPTIONS, _LOGITS = "special:model.yml", "decoder_ff_logit_out_Wt"
# Options whose other values would be another model.
_REQUIRED = allowed(
    ("type", ("transformer",)),
    ("transformer-decoder-autoreg", ("self-attention",)),
    ("transformer-ffn-depth", (2,)),
    ("transformer-decoder-ffn-depth", (0, 2)),
    ("transformer-attention-mask", ("default",)),
    ("transformer-postprocess-emb", ("d", "")),
    ("transformer-tied-layers input-types", ([], None)),
    ("lemma-dim-emb factors-dim-emb", (0,)),
    ("transformer-no-projection transformer-no-affine transformer-no-bias", (False,)),
    ("transformer-rnn-projection transformer-pool layer-normalization", (False,)),
    ("transformer-disable-position-embeddings right-left skip ulr", (False,)),
)
_SIZES = "dim-emb transformer-heads transformer-dim-ffn enc-depth dec-depth".split()
_NORM_POSITIONS = {"post": ["", "dan", ""], "pre": ["n", "da", "n"]}
# Its gelu is the exact one: measured with 1.12.42 on a CPU.
_ACTIVATIONS = ("relu", "swish", "gelu")

_HF_POSITIONS = (
    "Positions are computed as Hugging Face computes them, not as Marian, with which "
    "the model was trained: for comparisons."
)
_PRE_NORM = (
    "Marian's own decoder (1.12.42, measured) does not normalize keys and values of "
    "its self-attention after the first token; here they are normalized, so that "
    "outputs may differ."
)


def is_marian(path: Path) -> bool:
    """Returns whether a path is a model of Marian, or a directory with one."""
    with suppress(OSError):
        return _model_file(path) is not None
    return False


def read_marian(path: Path, options: ImportOptions) -> ImportedModel:
    """Reads a model of Marian with its vocabularies.

    Args:
      path: of the `.npz`, or of a directory with one.

    Raises:
      DataError: a file is damaged, or the model of an unsupported kind.
      InputMissingError: the model or a vocabulary is missing.
      UserError: a package is not installed.
    """
    file = _model_file(path)
    if file is None:
        raise InputMissingError(f"{path} has no model.npz. Pass Marian's model file.")
    tensors = read_npz(file)
    if _OPTIONS not in tensors:
        raise DataError(f"{file} has no {_OPTIONS}. Pass a model of Marian.")
    content = tensors.pop(_OPTIONS).tobytes().rstrip(b"\0")
    source = Source(tensors, name=str(file))
    settings = Settings(parse_yaml(content, name=f"{file}: {_OPTIONS}"), name=file)
    model = _config_of(settings, source)
    is_joint = "Wemb" in source
    names = ["Wemb"] * 2 if is_joint else ["encoder_Wemb", "decoder_Wemb"]
    sizes = [_rows(source, name) for name in dict.fromkeys(names)]
    decoder, files = _read_decoder(file)
    found = marian_vocabularies(file, decoder, given=options.vocabularies, sizes=sizes)
    if "decoder_ff_logit_out_W" in source and _LOGITS not in source:
        source[_LOGITS] = source.pop("decoder_ff_logit_out_W").T
    ends = (sizes[0], sizes[-1])
    tables = take_matrices(source, model, ends, inputs=names, outputs=[_LOGITS])
    bias, positions = np.zeros(sizes[-1], np.float32), {}
    if not settings.get("output-omit-bias", False):
        bias = source.take("decoder_ff_logit_out_b", 1, sizes[-1])[0]
    if model["positions"] == "learned":
        table = source.take("Wpos", model["max_positions"], model["d_model"])
        positions = dict.fromkeys(("encoder", "decoder"), table)
    take = functools.partial(_take, source, model)
    params = read_params(
        source, model, take, tables, found.ids, bias=bias, positions=positions
    )
    if options.positions == "huggingface":
        model["position_rates"] = "paper"
    return ImportedModel(
        model=model,
        search=_search(decoder, model),
        params=params,
        vocabularies=found.pair,
        files=tuple(dict.fromkeys([file, *files, *found.files])),
        notes=(*_notes(decoder, model, options.positions), *found.notes),
        shared_ids=is_joint,
    )


def _config_of(settings: Settings, source: Source) -> dict[str, Any]:
    """Returns `config.model`, by key."""
    settings.require(_REQUIRED)
    places = ("preprocess", "postprocess", "postprocess-top")
    around = [settings.get(f"transformer-{place}") or "" for place in places]
    norms = [name for name, known in _NORM_POSITIONS.items() if known == around]
    if not norms:
        settings.refuse(
            "transformer-postprocess",
            "'dan', or 'da' with 'n' as preprocess and postprocess-top",
        )
    tying = "decoder" if settings.get("tied-embeddings") else "none"
    learned = "Wpos" in source
    return {
        **settings.sizes(*_SIZES),
        "norm_position": norms[0],
        "activation": settings.choice(
            "transformer-ffn-activation", _ACTIVATIONS, default="swish"
        ),
        "attention_biases": True,
        "output_bias": True,  # of pad and bos, which Marian lacks
        "positions": "learned" if learned else "sinusoidal",
        "position_rates": "tensor2tensor",
        "scale_embeddings": not learned,
        **({"max_positions": _rows(source, "Wpos")} if learned else {}),
        "start": "zero",
        "tying": "all" if settings.get("tied-embeddings-all") else tying,
        "layer_norm_epsilon": 1e-6,
    }


def _rows(source: Source, tensor: str) -> int:
    shape = source.shape(tensor)
    if len(shape) != 2 or not is_size(shape[0]):
        raise DataError(
            f"{source.name}: {tensor} must be a matrix, not {shape}. Pass another."
        )
    return shape[0]


def _take(
    source: Source, config: Mapping[str, Any], path: str, kind: str, *shape: int
) -> Array:
    """Takes an array of the stacks; see `layout.Take`."""
    name = marian_name(path, kind)
    if kind == "kernel":
        return source.take(name, *shape)
    is_norm = path.count("/") == 2 and path.endswith("_norm")
    suffix = "_pre" if is_norm and config["norm_position"] == "pre" else ""
    row: Array = source.take(f"{name}{suffix}", 1, *shape)[0]
    return row


_PARTS = part_names(
    "self_{}q self_{}k self_{}v self_{}o self_Wo_ln_{} context_{}q context_{}k "
    "context_{}v context_{}o context_Wo_ln_{} ffn_{}1 ffn_{}2 ffn_ffn_ln_{}"
)


def marian_name(path: str, kind: str) -> str:
    """Returns the name of the tensor of a part; see `layout.Take`.

    Example:
      >>> marian_name("decoder/layer_1/cross_attention/key", "kernel")
      'decoder_l2_context_Wk'
    """
    stack, layer, *part = path.split("/")
    if not part:
        return f"{stack}_top_ln_{kind}"
    word = kind if path.endswith("_norm") else {"kernel": "W", "bias": "b"}[kind]
    number = int(layer.removeprefix("layer_")) + 1
    return f"{stack}_l{number}_{_PARTS['/'.join(part)].format(word)}"


def _model_file(path: Path) -> Path | None:
    """Returns the model itself: of several in a directory, `model.npz`."""
    if path.is_dir():
        named = [one] if (one := path / "model.npz").is_file() else []
        files, if_bad = named or path.glob("*.npz"), bool(named)
        usable = [one for one in files if _has_options(one, if_bad=if_bad)]
        return usable[0] if len(usable) == 1 else None
    is_model = path.suffix == ".npz" and _has_options(path, if_bad=path.is_file())
    return path if is_model else None


def _has_options(path: Path, *, if_bad: bool) -> bool:
    """Returns whether a file has Marian's options; `if_bad` of a damaged file.

    Of a file that is meant to be a model the error is the reader's.
    """
    with suppress(OSError, DataError), damage_as_data_error(f"{path} is no archive"):
        with path.open("rb") as file, Archive(file) as archive:
            return "special:model.yml.npy" in archive.sizes
    return if_bad and path.is_file()


def _read_decoder(model: Path) -> tuple[Settings, list[Path]]:
    """Reads the settings of decoding that lie beside a model."""
    values: Mapping[str, Any] = {}
    names = (f"{model.name}.decoder.yml", "decoder.yml")
    files = [file for name in names if (file := model.with_name(name)).is_file()][:1]
    for file in files:
        content = read_limited(file, max_bytes=MAX_YAML_BYTES, advice="Restore it.")
        values = parse_yaml(content, name=str(file))
    # `normalize: true` is an exponent of 1.
    numbers = {key: float(v) if isinstance(v, bool) else v for key, v in values.items()}
    advice = "Change it, or remove the file."
    return Settings(numbers, name=(*files, model)[0], advice=advice), files


def _search(decoder: Settings, model: Mapping[str, Any]) -> dict[str, Any]:
    # Marian's own defaults.
    number = functools.partial(decoder.number, most=1e6)
    return {
        "decoding.beam_size": decoder.size("beam-size", default=12, most=10_000),
        "decoding.length_penalty": number("normalize", default=0.0),
        "decoding.length_normalization": "power",
        "decoding.beam_rule": "shrinking",
        "decoding.max_length_ratio": number("max-length-factor", default=3.0),
        "decoding.allow_unk": bool(decoder.get("allow-unk")),
        **length_limits(model),
    }


def _notes(decoder: Settings, model: Mapping[str, Any], positions: str) -> list[str]:
    notes = [_HF_POSITIONS] * (positions == "huggingface")
    if penalty := decoder.get("word-penalty"):
        notes.append(f"word-penalty={short_repr(penalty)} is left out.")
    return notes + [_PRE_NORM] * (model["norm_position"] == "pre")
