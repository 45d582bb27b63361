"""Imports Hugging Face MarianMTModels: all of OPUS-MT, and those trained there.

The weights that HF converted from Marian were trained with Marian's wavelengths, and HF
computes the paper's; so which of the two a model needs depends on where it was trained.

`source.spm` and `target.spm` split text, and `vocab.json` has the ids of the pieces;
the ids of the SentencePiece models are not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from t2t_jax.checkpointing.safetensors_io import read_safetensors
from t2t_jax.data.files.lines import require_files
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
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
from t2t_jax.exchange.importing.imported import ImportedModel, ImportOptions, Settings
from t2t_jax.exchange.importing.layout import (
    MATRICES,
    Array,
    Source,
    read_params,
    take_matrices,
    torch_layers,
)
from t2t_jax.exchange.importing.vocabularies import Id, Ids, our_ids, pieces_by
from t2t_jax.exchange.readers.torch_file import read_torch_file
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_json_object, read_limited
from t2t_jax.types import UNK

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_INDEX = ".index.json"  # of a model in several files
_PART = re.compile(r"[\w-]+\.(safetensors|bin)")
_BIAS = "final_logits_bias"
_MATRICES = {
    "inputs": [f"model.{one}.embed_tokens.weight" for one in ("encoder", "decoder")],
    "outputs": ["lm_head.weight"],
    "shared": ["model.shared.weight"],
}
_FIRST_BYTES = 1 << 16
TOKENIZER = "tokenizer_config.json"
SPM = ("source.spm", "target.spm")
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
_ADVICE = "Pass a complete model."
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
_PUNCTUATION = (
    "Punctuation is not normalized, as in Hugging Face Transformers; training text of "
    "OPUS-MT was, as Moses does. `--normalize` does that here."
)
_RENORMALIZED = (
    "`renormalize_logits=True` is left out: probabilities are not divided by those of "
    "the tokens that may be produced, so that some outputs of a beam search may differ "
    "from those of Hugging Face Transformers."
)
_MARIAN_SEARCH = {
    "decoding.beam_rule": "shrinking",
    "decoding.max_length_ratio": 3.0,
    "decoding.allow_unk": False,
}


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
    found = read_vocabularies(path, architecture, bos, options)
    ids, is_marian = found.ids, trained.by == "marian"
    model = {**architecture.model, **trained.model, "start": start}
    biases = [name for name in source if name.endswith("_proj.bias")]
    model["attention_biases"] |= any(source[name].any() for name in biases)
    model["output_bias"] |= None in ids[1] or bool(bias.any())
    pad = architecture.ids["pad"]
    if is_marian and not (inputs[pad].any() or bias[pad]):
        ids = ids[0], [None, *ids[1][1:]]  # HF's addition would take probability.
    take = torch_layers(source, prefix="model.")
    own = bias if model["output_bias"] else None
    ignored = () if model["attention_biases"] else biases
    params = read_params(source, model, take, tables, ids, bias=own, ignored=ignored)
    marker = architecture.marker if trained.by == "t2t_jax" else {}
    search = search_of(generation, marker, special=found.special, unk=found.unk)
    return ImportedModel(
        model=model,
        search={**search, **_MARIAN_SEARCH} if is_marian else search,
        params=params,
        vocabularies=found.pair,
        files=(*weights, *found.files),
        notes=_notes(trained, found, generation, options),
        languages=found.languages,
        shared_ids=found.shared,
    )


def read_weights(directory: Path) -> tuple[Source, tuple[Path, ...]]:
    """Reads the tensors of a model, which may be in several files.

    Returns:
      The tensors, and the files, those of settings included.

    Raises:
      DataError: a file is damaged.
      InputMissingError: a file is missing.
    """
    files = _find_weights(directory)
    tensors: dict[str, Any] = {}
    for path in files:
        if path.suffix == ".safetensors":
            tensors |= read_safetensors(path, advice=_ADVICE)[0]
        elif path.suffix == ".bin" and isinstance(found := read_torch_file(path), dict):
            tensors |= found
    settings = (directory / name for name in (CONFIG, GENERATION))
    return Source(tensors, name=str(files[0])), (*files, *filter(Path.exists, settings))


def _find_weights(folder: Path) -> tuple[Path, ...]:
    for name in WEIGHTS:
        if (path := folder / name).exists():
            return (path,)
        if (index := folder / f"{name}{_INDEX}").exists():
            named = read_json_object(index, advice=_ADVICE).get("weight_map")
            parts = {*map(str, named.values())} if isinstance(named, dict) else {""}
            if not all(map(_PART.fullmatch, parts)):
                raise DataError(f"{index} has no names of files. {_ADVICE}")
            files = [folder / part for part in sorted(parts)]
            require_files(*files, change="--from")
            return (index, *files)
    raise InputMissingError(f"{folder} has neither {' nor '.join(WEIGHTS)}. {_ADVICE}")


def take_tables(
    source: Source, architecture: Architecture
) -> tuple[dict[str, Array], Array]:
    """Takes the vocabulary matrices by our paths, and the bias of the logits."""
    model, sizes = architecture.model, architecture.sizes
    tables = take_matrices(source, model, sizes, **_MATRICES)
    if _BIAS in source:
        return tables, source.take(_BIAS, 1, sizes[1])[0]
    return tables, np.zeros(sizes[1], np.float32)


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


def search_of(
    generation: Generation, marker: Mapping[str, Any], *, special: Set[Id], unk: Id
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
    trained: Trained, found: HFVocabularies, search: Generation, options: ImportOptions
) -> tuple[str, ...]:
    notes = [_POSITION_NOTES[trained.by].format(why=trained.why)]
    if tokens := found.language_tokens:
        notes.append(
            f"A source begins with one of {len(tokens):,} tags, such as `{tokens[0]}`."
        )
    notes += [_PUNCTUATION] * (not options.normalize)
    notes += stopping_notes(search)
    # In Marian's models pad has no probability, and nothing is to be renormalized.
    notes += [_RENORMALIZED] * (search.renormalized and trained.by != "marian")
    return tuple(notes)


def stopping_notes(generation: Generation) -> list[str]:
    """Returns what to say of how HF's beam search stops."""
    if generation.early_stopping is False:
        return []
    return [
        f"`early_stopping={generation.early_stopping}` is left out: the beam search "
        "ends by `decoding.beam_rule`, so that some outputs may differ."
    ]


_Table: TypeAlias = Mapping[str, int]  # ids by piece


class HFVocabularies(NamedTuple):
    """The vocabularies of a model, and which rows of its matrices are theirs.

    Attributes:
      ids: the foreign id of each of ours, of source and target.
      special: foreign ids that no search here produces: pad, start and tags.
      unk: the foreign id of the unknown token of the target, if it has one.
      shared: whether both sides have the same pieces with the same ids.
      languages: of source and target, if the model names both.
      language_tokens: with which a source may begin, such as `>>de<<`.
    """

    pair: VocabularyPair
    ids: tuple[Ids, Ids]
    special: Set[Id]
    unk: Id
    shared: bool
    languages: tuple[str, str] | None
    language_tokens: tuple[str, ...]
    files: tuple[Path, ...]


class _Tokens(NamedTuple):
    """What `tokenizer_config.json` says."""

    eos: str
    unk: str
    pad: str
    separate: bool
    languages: tuple[str, str] | None


def read_vocabularies(
    directory: Path, architecture: Architecture, bos: int | None, options: ImportOptions
) -> HFVocabularies:
    """Reads the vocabularies of both sides.

    Args:
      bos: the foreign id that becomes our bos, if one does.

    Raises:
      DataError: a file is damaged, or is not of the same model.
      InputMissingError: a file is missing.
      UserError: a package is not installed.
    """
    tokens, (size, target_size) = _read_tokens(directory), architecture.sizes
    if not tokens.separate and size != target_size:
        raise DataError(
            f"{directory}: one {VOCABULARY} requires equal vocab_size and "
            f"decoder_vocab_size. {_ADVICE}"
        )
    names = [VOCABULARY] + [TARGET_VOCABULARY] * tokens.separate
    files = [directory / name for name in names]
    tables = list(map(read_table, files, architecture.sizes))
    target_ids = _ids_of(tables[-1], tokens, target_size, architecture.ids, bos=bos)
    source_ids = _ids_of(tables[0], tokens, size, {}) if tokens.separate else target_ids
    moses = (tokens.languages or ("en",))[0] if options.normalize else ""
    spm = [directory / name for name in SPM]
    source = _vocabulary(spm[0], tables[0], ids=source_ids, moses=moses)
    target = _vocabulary(spm[1], tables[-1], ids=target_ids, moses="")
    same = not tokens.separate and source.model == target.model
    special: set[Id] = {architecture.ids[n] for n in ("pad", "decoder_start")}
    return HFVocabularies(
        pair=VocabularyPair(target if same else source, target),
        ids=(source_ids, target_ids),
        special=special.union(target_ids[tag] for tag in target.tags.values()),
        unk=tables[-1].get(tokens.unk),
        shared=not tokens.separate,
        languages=tokens.languages,
        language_tokens=tuple(filter(_is_language, tables[0])),
        files=tuple(filter(Path.exists, (*spm, *files, directory / TOKENIZER))),
    )


def _read_tokens(directory: Path) -> _Tokens:
    path = directory / TOKENIZER
    found = read_json_object(path, advice=_ADVICE) if path.exists() else {}
    values = Settings(found, name=path)
    values.require(
        {"tokenizer_class": ("MarianTokenizer", None), "sp_model_kwargs": ({}, None)}
    )
    eos, unk, pad = (
        _content(values.get(f"{name}_token"), default=default)
        for name, default in (("eos", "</s>"), ("unk", "<unk>"), ("pad", "<pad>"))
    )
    codes = [str(values.get(f"{side}_lang") or "") for side in ("source", "target")]
    languages = (codes[0], codes[1]) if all(map(str.isalnum, codes)) else None
    return _Tokens(eos, unk, pad, values.get("separate_vocabs") is True, languages)


def _content(token: object, *, default: str) -> str:
    """Returns a special token, which is a string or an object with its content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else default


def read_table(path: Path, size: int) -> dict[str, int]:
    """Reads pieces and their ids, which must be different and below `size`."""
    require_files(path, change="--from")
    table = read_json_object(path, advice=_ADVICE)
    ids = [one for one in table.values() if type(one) is int and 0 <= one < size]
    if len({*ids}) != len(table):
        raise DataError(
            f"{path} must have different ids from 0 to {size - 1:,}, the model's, and "
            "has others. Pass the vocabulary of the model."
        )
    return table


def _ids_of(
    table: _Table, tokens: _Tokens, size: int, special: _Table, *, bos: Id = None
) -> Ids:
    """Returns the foreign ids of a side, of which the special ones must differ.

    Args:
      special: those that it must have; {} for the source; see `Architecture.ids`.
    """
    eos, unk = table.get(tokens.eos), table.get(tokens.unk)
    wanted, pad, start = eos, table.get(tokens.pad), None
    if special:
        wanted, pad, start = (special[n] for n in ("eos", "pad", "decoder_start"))
    is_unk = unk is not None and unk not in (eos, pad, start)
    if eos is None or eos != wanted or eos == pad or not is_unk:
        raise DataError(
            f"A vocabulary must have {tokens.eos:.50} with id {wanted}, eos_token_id, "
            f"and {tokens.unk:.50} with another, not those of pad and start ({pad}, "
            f"{start}), and has {eos} and {unk}. Pass the vocabulary of the model."
        )
    return our_ids(size, pad=pad, bos=bos, eos=eos, unk=unk)


def _vocabulary(path: Path, table: _Table, *, ids: Ids, moses: str) -> Vocabulary:
    require_files(path, change="--from")
    model = read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=_ADVICE)
    pieces = pieces_by({id_: piece for piece, id_ in table.items()}, ids)
    if not moses and ids == [*range(len(ids))]:
        # As it is, if its ids are ours and the table's.
        with suppress(DataError):
            own = Vocabulary(model)
            if own.pieces(range(UNK + 1, own.size)) == pieces[UNK + 1 :]:
                return own
    content = table_file(
        "sentencepiece_table",
        pieces,
        sentencepiece=model,
        language_tokens=any(map(_is_language, table)),
        moses=moses,
    )
    return Vocabulary(content, name=str(path), advice=_ADVICE)


def _is_language(piece: str) -> bool:
    return piece.startswith(">>") and piece.endswith("<<")
