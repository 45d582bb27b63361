"""Imports Hugging Face MarianMTModels: all of OPUS-MT, and those trained there.

The weights that HF converted from Marian were trained with Marian's wavelengths, and HF
computes the paper's; so which of the two a model needs depends on where it was trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.checkpointing.safetensors_io import read_safetensors
from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.huggingface.settings import (
    CONFIG,
    GENERATION,
    Generation,
    Settings,
    read_generation,
    read_settings,
)
from t2t_jax.exchange.importing.huggingface.trained import Trained, find_trained
from t2t_jax.exchange.importing.huggingface.vocabulary import (
    HFVocabularies,
    Ids,
    read_vocabularies,
)
from t2t_jax.exchange.importing.imported import ImportedModel, ImportOptions
from t2t_jax.exchange.importing.layout import (
    Array,
    ParameterTree,
    Source,
    torch_layers,
)
from t2t_jax.exchange.readers.torch_file import read_torch_file
from t2t_jax.types import BOS, EOS, PAD, Params

_FIRST_BYTES = 1 << 16
_POSITION_NOTES = {
    "marian": (
        "Marian trained these weights ({why}), so positions, epsilon and limits are "
        "Marian's own. Hugging Face Transformers computes other wavelengths, and some "
        "other outputs; `--positions=huggingface` does as well."
    ),
    "huggingface": (
        "Positions and epsilon are those of Hugging Face Transformers ({why}). If "
        "Marian trained the weights, `--positions=marian` has its own."
    ),
    "t2t_jax": "Positions, epsilon and search are those that {why} with.",
}
_MOST_EXTRA_TOKENS = 200
_MARIAN_SEARCH = {
    "beam_rule": "shrinking",
    "max_length_ratio": 3.0,
    "allow_unk": False,
}


def is_hf_marian(path: Path) -> bool:
    """Returns whether a path is a directory of Hugging Face Transformers."""
    config = path / CONFIG
    if not config.is_file() or not any((path / name).exists() for name in WEIGHTS):
        return False
    with config.open("rb") as file:
        return b'"model_type"' in file.read(_FIRST_BYTES)


def read_hf_marian(path: Path, options: ImportOptions) -> ImportedModel:
    """Reads the directory of a MarianMTModel.

    Args:
      path: with `config.json`, `model.safetensors` or `pytorch_model.bin`,
        `source.spm`, `target.spm` and `vocab.json`.

    Raises:
      DataError: a file is damaged or of another model, or the model is not supported.
      InputMissingError: a file is missing.
      UserError: a package is not installed, or an option is not known.
    """
    settings = read_settings(path)
    generation = read_generation(path, settings=settings)
    weights = find_weights(path)
    tensors = read_weights(weights)
    source = Source(tensors, name=str(weights))
    matrices = take_matrices(source, settings)
    trained = find_trained(
        path, source, bias=matrices.bias, settings=settings, wanted=options.positions
    )
    vocabularies = read_vocabularies(
        path,
        settings=settings,
        bos=_bos_of(matrices, settings),
        normalize=options.normalize,
    )
    ids = vocabularies.ids
    model = _model_config(settings, matrices, trained)
    model["attention_biases"] |= has_attention_biases(tensors)
    model["output_bias"] |= None in ids[1] or bool(matrices.bias.any())
    if trained.is_marian and _is_empty_pad(matrices, settings):
        ids = (ids[0], [None, *ids[1][1:]])
    params = build_params(source, matrices, settings=settings, model=model, ids=ids)
    source.check_all_taken()
    return ImportedModel(
        config={
            **{f"model.{key}": value for key, value in model.items()},
            **_vocabulary_config(settings, vocabularies),
            **_decoding_config(generation, settings, vocabularies, trained),
        },
        params=params,
        vocabularies=vocabularies.pair,
        files=(
            weights,
            *(path / name for name in (CONFIG, GENERATION) if (path / name).exists()),
            *vocabularies.files,
        ),
        notes=_notes(trained, vocabularies, generation, options),
        languages=vocabularies.languages,
    )


def _bos_of(matrices: Matrices, settings: Settings) -> int | None:
    """Returns the foreign id that becomes our bos."""
    if settings.start == settings.eos:
        known = settings.bos not in (settings.eos, settings.pad)
        return settings.bos if known else None
    if settings.start == settings.pad and not matrices.target[settings.pad].any():
        return None
    return settings.start


def _model_config(
    settings: Settings, matrices: Matrices, trained: Trained
) -> dict[str, Any]:
    """Returns `config.model` where it is not the default."""
    start = "bos" if matrices.target[settings.start].any() else "zero"
    depth = settings.d_model // settings.num_heads
    unequal = settings.decoder_layers != settings.encoder_layers
    tied = "decoder" if settings.tied else "none"
    return {
        "num_layers": settings.encoder_layers,
        "num_decoder_layers": settings.decoder_layers if unequal else 0,
        "d_model": settings.d_model,
        "d_ff": settings.d_ff,
        "num_heads": settings.num_heads,
        "d_k": depth,
        "d_v": depth,
        "activation": settings.activation,
        "attention_biases": trained.attention_biases,
        "output_bias": trained.output_bias,
        "scale_embeddings": settings.scale_embedding,
        "position_rates": trained.position_rates,
        "first_position": trained.first_position,
        "layer_norm_epsilon": trained.layer_norm_epsilon,
        "start": "eos" if settings.start == settings.eos else start,
        "tying": "all" if settings.shared else tied,
    }


def _is_empty_pad(matrices: Matrices, settings: Settings) -> bool:
    """Returns whether the pad row is HF's addition, whose logit takes probability."""
    return not (matrices.target[settings.pad].any() or matrices.bias[settings.pad])


def _vocabulary_config(
    settings: Settings, vocabularies: HFVocabularies
) -> dict[str, Any]:
    source, target = vocabularies.pair
    sizes: dict[str, Any] = {"vocabulary.size": target.size}
    if not vocabularies.pair.shared:
        sizes["vocabulary.source_size"] = source.size
        sizes["vocabulary.shared_ids"] = vocabularies.shared
    return sizes


def _decoding_config(
    generation: Generation,
    settings: Settings,
    vocabularies: HFVocabularies,
    trained: Trained,
) -> dict[str, Any]:
    """Returns `config.decoding`: HF's settings, within Marian's limits for Marian's."""
    noted = settings.marker.get("decoding")
    if trained.by == "t2t_jax" and isinstance(noted, dict):
        return {f"decoding.{key}": value for key, value in noted.items()}
    ordinary = generation.never - {settings.pad, settings.start, vocabularies.unk}
    if ordinary:
        raise DataError(
            f"{GENERATION}: bad_words_ids={short_repr(sorted(ordinary))} is not "
            "supported, only those of pad and unknown tokens. Remove it, if outputs "
            "may have them."
        )
    extra = _MOST_EXTRA_TOKENS
    if generation.max_length:
        extra = min(extra, generation.max_length)
    found = {
        "beam_size": generation.num_beams,
        "length_penalty": generation.length_penalty,
        "length_normalization": "power",
        "max_extra_tokens": extra,
        "max_source_length": max(settings.max_positions, 2),
        "min_tokens": generation.min_tokens,
        "allow_unk": vocabularies.unk not in generation.never,
    }
    if trained.is_marian:
        found |= _MARIAN_SEARCH
    return {f"decoding.{key}": value for key, value in found.items()}


def _notes(
    trained: Trained,
    vocabularies: HFVocabularies,
    generation: Generation,
    options: ImportOptions,
) -> tuple[str, ...]:
    notes = [_POSITION_NOTES[trained.by].format(why=trained.why)]
    if tokens := vocabularies.language_tokens:
        notes.append(
            f"A source begins with the token of a language: one of {len(tokens):,}, "
            f"such as `{tokens[0]}`."
        )
    if not options.normalize:
        notes.append(
            "Punctuation is not normalized, as in Hugging Face Transformers; training "
            "text of OPUS-MT was, as Moses does. `--normalize` does that here."
        )
    if generation.early_stopping is not False:
        notes.append(
            f"`early_stopping={generation.early_stopping}` is left out: the beam "
            "search ends by `decoding.beam_rule`, so that some outputs may differ from "
            "those of Hugging Face Transformers."
        )
    # In Marian's models pad has no probability, and nothing is to be renormalized.
    if generation.renormalized and not trained.is_marian:
        notes.append(
            "`renormalize_logits=True` is left out: probabilities are not divided by "
            "those of the tokens that may be produced, so that some outputs of a beam "
            "search may differ from those of Hugging Face Transformers."
        )
    return tuple(notes)


WEIGHTS = ("model.safetensors", "pytorch_model.bin")

_SHARED, _HEAD, _BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
_STACKS = ("encoder", "decoder")


def find_weights(directory: Path) -> Path:
    """Returns the file of weights of a directory.

    Raises:
      InputMissingError: there is none.
    """
    for name in WEIGHTS:
        if (directory / name).exists():
            return directory / name
    raise InputMissingError(
        f"{directory} has neither {' nor '.join(WEIGHTS)}. Pass a complete model, in "
        "one file."
    )


def read_weights(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Reads all tensors of a file of weights, by name.

    Raises:
      DataError: the file is damaged, or has more than tensors.
      OSError: it cannot be read.
    """
    if path.name == WEIGHTS[0]:
        return read_safetensors(path)[0]
    found = read_torch_file(path)
    if not isinstance(found, dict):
        raise DataError(f"{path} has no tensors by name. Pass a state dict.")
    tensors = {
        name: one
        for name, one in found.items()
        if isinstance(name, str) and isinstance(one, np.ndarray)
    }
    if len(tensors) < len(found):
        raise DataError(f"{path} has more than tensors by name. Pass a state dict.")
    return tensors


class Matrices(NamedTuple):
    """The vocabulary matrices [V, D]; `output` is None if it is the target's."""

    source: Array
    target: Array
    output: Array | None
    bias: Array


def take_matrices(source: Source, settings: Settings) -> Matrices:
    """Takes the vocabulary matrices and the bias of the logits.

    Raises:
      DataError: one is missing or has another shape, or two that are tied differ.
    """
    stacks = [f"model.{stack}.embed_tokens.weight" for stack in _STACKS]
    d_model = settings.d_model
    target_shape = (settings.decoder_vocab_size, d_model)
    if settings.shared:
        rows = target = _take_equal(source, (_SHARED, *stacks, _HEAD), target_shape)
    else:
        rows = source.take(stacks[0], settings.vocab_size, d_model)
        equal = (stacks[1], _HEAD) if settings.tied else stacks[1:]
        target = _take_equal(source, equal, target_shape)
    bias = np.zeros(settings.decoder_vocab_size, np.float32)
    if _BIAS in source:
        bias = source.take(_BIAS, 1, settings.decoder_vocab_size)[0]
    output = None if settings.tied else source.take(_HEAD, *target_shape)
    return Matrices(rows, target, output, bias)


def _take_equal(source: Source, names: Sequence[str], shape: tuple[int, int]) -> Array:
    """Takes a matrix that may be stored under several names."""
    found = [source.take(name, *shape) for name in names if name in source]
    if not found:
        found = [source.take(names[0], *shape)]
    if not all(np.array_equal(found[0], other) for other in found):
        raise DataError(
            f"{', '.join(names)} must be one matrix by the configuration, and differ. "
            "Pass the files of one model."
        )
    return found[0]


def has_attention_biases(tensors: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Returns whether any bias of an attention is not 0."""
    return any(one.any() for name, one in tensors.items() if _is_attention_bias(name))


def _is_attention_bias(name: str) -> bool:
    return name.endswith("_proj.bias")


def build_params(
    source: Source,
    matrices: Matrices,
    *,
    settings: Settings,
    model: Mapping[str, Any],
    ids: tuple[Ids, Ids],
) -> Params:
    """Takes all other tensors, and returns the parameters of a `Transformer`.

    Args:
      model: values of `config.model`.
      ids: the foreign id of each of ours, of source and target.

    Raises:
      DataError: a tensor is missing or has another shape.
    """
    tree = ParameterTree(model)
    tree.add_stacks(torch_layers(source, prefix="model."))
    if not model["attention_biases"]:
        for name in filter(_is_attention_bias, source):  # of zeros
            source.take(name, settings.d_model)
    if settings.shared:
        tree.add_table("embedding", matrices.target, ids=ids[1])
    else:
        tree.add_table("source_embedding", matrices.source, ids=ids[0])
        tree.add_table("target_embedding", matrices.target, ids=ids[1])
    output = "embedding" if settings.shared else "target_embedding"
    if matrices.output is not None:
        output = "pre_softmax"
        tree.add_table(output, matrices.output, ids=ids[1])
    if model["output_bias"]:
        # A second copy of a row would take probability.
        own = list(ids[1])
        if own[BOS] in (own[PAD], own[EOS]):
            own[BOS] = None
        tree.add_output_bias(output, matrices.bias, ids=own)
    return tree.params
