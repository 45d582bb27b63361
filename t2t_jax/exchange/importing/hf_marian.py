"""Imports Hugging Face MarianMTModels: all of OPUS-MT, and those trained there.

The weights that HF converted from Marian were trained with Marian's wavelengths, and HF
computes the paper's; so which of the two a model needs depends on where it was trained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from t2t_jax.checkpointing.safetensors_io import read_safetensors
from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.hf_settings import (
    CONFIG,
    GENERATION,
    Architecture,
    Generation,
    Trained,
    find_trained,
    read_architecture,
    read_generation,
)
from t2t_jax.exchange.importing.hf_vocabulary import HFVocabularies, read_vocabularies
from t2t_jax.exchange.importing.imported import ImportedModel, ImportOptions
from t2t_jax.exchange.importing.layout import (
    MATRICES,
    Array,
    Source,
    read_params,
    take_matrices,
    torch_layers,
)
from t2t_jax.exchange.readers.torch_file import read_torch_file
from t2t_jax.files import read_json_object

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_INDEX = ".index.json"  # of a model in several files
_PART = re.compile(r"[\w-]+\.(safetensors|bin)")
_SHARED, _HEAD, _BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
_EMBEDDINGS = [f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")]
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
_MARIAN_SEARCH = {"beam_rule": "shrinking", "max_length_ratio": 3.0, "allow_unk": False}


def is_hf_marian(path: Path) -> bool:
    """Returns whether a path is a directory of Hugging Face Transformers."""
    config = path / CONFIG
    weights = [path / f"{name}{end}" for name in WEIGHTS for end in ("", _INDEX)]
    if not config.is_file() or not any(map(Path.exists, weights)):
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
      UserError: a package is not installed.
    """
    architecture = read_architecture(path)
    generation = read_generation(path, architecture=architecture)
    source, weights = read_weights(path)
    tables, bias = take_tables(source, architecture)
    trained = find_trained(
        path, source, bias=bias, architecture=architecture, wanted=options.positions
    )
    inputs = tables[MATRICES[architecture.model["tying"]][:2][-1]]  # of the decoder
    start, bos = _start_of(inputs, architecture.ids)
    vocabularies = read_vocabularies(path, architecture, bos, options)
    ids = vocabularies.ids
    model = {**architecture.model, **trained.model, "start": start}
    biases = [name for name in source if name.endswith("_proj.bias")]
    model["attention_biases"] |= any(source[name].any() for name in biases)
    model["output_bias"] |= None in ids[1] or bool(bias.any())
    pad = architecture.ids["pad"]
    is_empty = not (inputs[pad].any() or bias[pad])
    if trained.by == "marian" and is_empty:
        ids = ids[0], [None, *ids[1][1:]]  # HF's addition would take probability.
    take = torch_layers(source, prefix="model.")
    own_bias = bias if model["output_bias"] else None
    ignored = () if model["attention_biases"] else biases
    files = (path / name for name in (CONFIG, GENERATION))
    return ImportedModel(
        model=model,
        search=_search(generation, architecture, vocabularies, trained),
        params=read_params(
            source, model, take, tables, ids, bias=own_bias, ignored=ignored
        ),
        vocabularies=vocabularies.pair,
        files=(*weights, *filter(Path.exists, files), *vocabularies.files),
        notes=_notes(trained, vocabularies, generation, options),
        languages=vocabularies.languages,
        shared_ids=vocabularies.shared,
    )


def read_weights(directory: Path) -> tuple[Source, tuple[Path, ...]]:
    """Reads the tensors of a model, which may be in several files.

    Returns:
      The tensors, and the files.

    Raises:
      DataError: a file is damaged.
      InputMissingError: a file is missing.
    """
    files = _find_weights(directory)
    tensors: dict[str, Any] = {}
    for path in files:
        if path.suffix == ".safetensors":
            tensors |= read_safetensors(path)[0]
        elif path.suffix == ".bin" and isinstance(found := read_torch_file(path), dict):
            tensors |= found
    return Source(tensors, name=str(files[0])), files


def _find_weights(directory: Path) -> tuple[Path, ...]:
    for name in WEIGHTS:
        if (path := directory / name).exists():
            return (path,)
        if (index := directory / f"{name}{_INDEX}").exists():
            advice = "Pass a complete model."
            named = read_json_object(index, advice=advice).get("weight_map")
            parts = {*map(str, named.values())} if isinstance(named, dict) else {""}
            if not all(map(_PART.fullmatch, parts)):
                raise DataError(f"{index} has no names of files. {advice}")
            if lost := [one for one in sorted(parts) if not (directory / one).exists()]:
                raise InputMissingError(
                    f"{directory / lost[0]}: no such file. {advice}"
                )
            return (index, *(directory / one for one in sorted(parts)))
    raise InputMissingError(
        f"{directory} has neither {' nor '.join(WEIGHTS)}. Pass a complete model."
    )


def take_tables(
    source: Source, architecture: Architecture
) -> tuple[dict[str, Array], Array]:
    """Takes the vocabulary matrices by our paths, and the bias of the logits."""
    tables = take_matrices(
        source,
        architecture.model,
        architecture.sizes,
        inputs=_EMBEDDINGS,
        outputs=[_HEAD],
        shared=[_SHARED],
    )
    size = architecture.sizes[1]
    if _BIAS in source:
        return tables, source.take(_BIAS, 1, size)[0]
    return tables, np.zeros(size, np.float32)


def _start_of(inputs: Array, special: Mapping[str, int]) -> tuple[str, int | None]:
    """Returns `model.start`, and the foreign id that becomes our bos.

    Args:
      inputs: embeddings of the decoder.
      special: see `Architecture.ids`.
    """
    start, pad, eos = (special[name] for name in ("decoder_start", "pad", "eos"))
    if start == eos:
        bos = special.get("bos")
        return "eos", bos if bos not in (eos, pad) else None
    if inputs[start].any():
        return "bos", start
    return "zero", start if start != pad else None


def _search(
    generation: Generation,
    architecture: Architecture,
    vocabularies: HFVocabularies,
    trained: Trained,
) -> dict[str, Any]:
    """Returns `config.decoding`: HF's settings, within Marian's limits for Marian's."""
    tags = vocabularies.pair.target.tags.values()
    special = {architecture.ids["pad"], architecture.ids["decoder_start"]}.union(
        vocabularies.ids[1][tag] for tag in tags
    )
    marker = architecture.marker if trained.by == "t2t_jax" else {}
    found = search_of(generation, marker, special=special, unk=vocabularies.unk)
    if trained.by == "marian":
        found |= {f"decoding.{key}": value for key, value in _MARIAN_SEARCH.items()}
    return found


def search_of(
    generation: Generation,
    marker: Mapping[str, Any],
    *,
    special: Set[int | None],
    unk: int | None,
) -> dict[str, Any]:
    """Returns values of `config.decoding` by key.

    Args:
      marker: what an export of ours noted; its search is taken as it is.
      special: ids that no search here produces.

    Raises:
      DataError: other tokens are not to be produced.
    """
    if isinstance(noted := marker.get("decoding"), dict):
        return {f"decoding.{key}": value for key, value in noted.items()}
    if ordinary := generation.never - special - {unk}:
        raise DataError(
            f"{GENERATION}: bad_words_ids={short_repr(sorted(ordinary))} is not "
            "supported, only those of pad and unknown tokens. Remove it."
        )
    found = {**generation.search, "allow_unk": unk not in generation.never}
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
            f"A source begins with one of {len(tokens):,} tags, such as `{tokens[0]}`."
        )
    if not options.normalize:
        notes.append(
            "Punctuation is not normalized, as in Hugging Face Transformers; training "
            "text of OPUS-MT was, as Moses does. `--normalize` does that here."
        )
    notes += stopping_notes(generation)
    # In Marian's models pad has no probability, and nothing is to be renormalized.
    if generation.renormalized and not trained.by == "marian":
        notes.append(
            "`renormalize_logits=True` is left out: probabilities are not divided by "
            "those of the tokens that may be produced, so that some outputs of a beam "
            "search may differ from those of Hugging Face Transformers."
        )
    return tuple(notes)


def stopping_notes(generation: Generation) -> list[str]:
    """Returns what to say of how HF's beam search stops."""
    if generation.early_stopping is False:
        return []
    return [
        f"`early_stopping={generation.early_stopping}` is left out: the beam search "
        "ends by `decoding.beam_rule`, so that some outputs may differ."
    ]
