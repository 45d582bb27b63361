"""Imports models of Marian: `model.npz`, with the vocabularies beside it.

Vocabularies are SentencePiece models (`.spm`), or lists of pieces (`.yml`, `.json`,
`.txt`), as of OPUS-MT: there `source.spm` and `target.spm` split the text, and a list
gives the pieces their ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.sentencepiece_ids import (
    piece_count,
    special_ids,
    with_our_ids,
)
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.imported import (
    ImportedModel,
    ImportOptions,
    length_limits,
)
from t2t_jax.exchange.importing.layout import our_ids
from t2t_jax.exchange.importing.marian.weights import MarianWeights
from t2t_jax.exchange.readers.archive import BAD_ZIP_ERRORS, Archive
from t2t_jax.exchange.readers.yaml_file import MAX_YAML_BYTES, parse_ids, parse_yaml
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_limited, read_text

_LISTS = (".yml", ".yaml", ".json", ".txt")
_SIDES = ("source", "target")
_ADVICE = "Pass the vocabularies of the model with --vocabularies."
# Marian's own defaults of decoding.
_BEAM_SIZE, _LENGTH_FACTOR = 12, 3
_MAX_BEAM_SIZE = 10_000
_MAX_NUMBER = 1e6  # of the decoder's other settings
_MAX_NAME_BYTES = 255
_PRE_NORM = (
    "Marian's own decoder (1.12.42, measured) does not normalize keys and values of "
    "its self-attention after the first token; here they are normalized, so that "
    "outputs may differ."
)


def is_marian(path: Path) -> bool:
    """Returns whether a path is a model of Marian, or a directory with one."""
    try:
        return _model_file(path) is not None
    except OSError:
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
    model = _model_file(path)
    if model is None:
        raise InputMissingError(f"{path} has no model.npz. Pass Marian's model file.")
    weights = MarianWeights(model)
    decoder, files = _read_decoder(model)
    paths = list(options.vocabularies) or _vocabulary_paths(model, decoder)
    sizes = weights.config["source_vocab_size"], weights.config["vocab_size"]
    sides = _read_sides(paths, (sizes[0] or sizes[1], sizes[1]))
    source, target = sides
    shared_ids = not sizes[0]
    if shared_ids and source.pieces != target.pieces:
        raise DataError(
            f"{model} has one embedding for both sides, and {paths[0]} and {paths[-1]} "
            f"have different pieces. {_ADVICE}"
        )
    pair = VocabularyPair(Vocabulary(source.model), Vocabulary(target.model))
    if source.model == target.model and shared_ids:
        pair = VocabularyPair(pair.target, pair.target)
    network = {**weights.config}
    del network["vocab_size"], network["source_vocab_size"]
    if options.positions == "huggingface":
        network["position_rates"] = "paper"
    return ImportedModel(
        config={
            "vocabulary.size": pair.target.size,
            **_source_keys(pair, shared_ids=shared_ids),
            **{f"model.{name}": value for name, value in network.items()},
            **_decoding(decoder, network),
        },
        params=weights.params(source_ids=source.ids, target_ids=target.ids),
        vocabularies=pair,
        files=tuple(dict.fromkeys([model, *files, *paths])),
        notes=(
            *_notes(decoder, options, paths),
            *([_PRE_NORM] if network["norm_position"] == "pre" else []),
        ),
    )


class _Side(NamedTuple):
    """A vocabulary.

    Attributes:
      model: content of its file, in our ids.
      pieces: by our ids.
      ids: the foreign id of each of ours.
    """

    model: bytes
    pieces: tuple[str, ...]
    ids: Sequence[int | None]


def _model_file(path: Path) -> Path | None:
    """Returns the model itself: of several in a directory, `model.npz`."""
    if path.is_dir():
        found = sorted(path.glob("*.npz"))
        named = [one for one in found if one.name == "model.npz"]
        usable = [
            one for one in named or found if _has_options(one, if_bad=bool(named))
        ]
        return usable[0] if usable and (named or len(usable) == 1) else None
    is_model = path.suffix == ".npz" and _has_options(path, if_bad=path.is_file())
    return path if is_model else None


def _has_options(path: Path, *, if_bad: bool) -> bool:
    """Returns whether a file has Marian's options; `if_bad` of a damaged file.

    Of a file that is meant to be a model the error is the reader's.
    """
    try:
        with path.open("rb") as file, Archive(file) as archive:
            return "special:model.yml.npy" in archive.sizes
    except (OSError, *BAD_ZIP_ERRORS):
        return if_bad and path.is_file()


def _read_decoder(model: Path) -> tuple[Mapping[str, Any], list[Path]]:
    """Reads the settings of decoding that lie beside a model."""
    names = (f"{model.name}.decoder.yml", "decoder.yml")
    for path in (model.with_name(name) for name in names):
        if path.is_file():
            content = read_limited(path, max_bytes=MAX_YAML_BYTES, advice="Restore it.")
            return parse_yaml(content, name=str(path)), [path]
    return {}, []


def _vocabulary_paths(model: Path, decoder: Mapping[str, Any]) -> list[Path]:
    """Finds the vocabularies beside a model."""
    directory = model.parent
    named = decoder.get("vocabs")
    if isinstance(named, list) and len(named) in (1, 2):
        found = [directory / _file_name(name) for name in named]
        if all(path.is_file() for path in found):
            return found
    for pattern in ("vocab*.spm", "*.vocab.yml", "vocab*.yml", "vocab*.json"):
        found = sorted(directory.glob(pattern))
        if len(found) == 1:
            return found
    both = [directory / f"{side}.spm" for side in _SIDES]
    if all(path.is_file() for path in both):
        return both
    raise InputMissingError(
        f"{directory} has no vocabulary of {model.name} that is found by its name. "
        "Pass --vocabularies=SOURCE,TARGET, or one file for both."
    )


def _file_name(path: object) -> str:
    """Returns the name of the file that an entry of `vocabs` is the path of."""
    name = Path(path).name if isinstance(path, str) else ""
    if not name or len(name.encode(errors="surrogatepass")) > _MAX_NAME_BYTES:
        raise DataError(
            f"vocabs of the decoder's options has {short_repr(path)}, which is not the "
            f"name of a file. {_ADVICE}"
        )
    return name


def _read_sides(paths: Sequence[Path], sizes: tuple[int, int]) -> list[_Side]:
    if not 1 <= len(paths) <= 2:
        raise DataError(
            f"A model has one vocabulary or two, not {len(paths)}. Change "
            "--vocabularies."
        )
    return [
        _read_side(path, size, side=side)
        for path, size, side in zip([paths[0], paths[-1]], sizes, _SIDES, strict=True)
    ]


def _read_side(path: Path, size: int, *, side: str) -> _Side:
    content = read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=_ADVICE)
    if path.suffix in _LISTS:
        return _read_list(path, content, size, side=side)
    name = str(path)
    if (count := piece_count(content, name=name)) != size:
        raise DataError(
            f"{name} has {count:,} pieces, and the model {size:,}. {_ADVICE}"
        )
    *_, eos, unk = special = special_ids(content, name=name)
    if eos is None or unk is None:
        raise DataError(f"{name} has no pieces for eos and unk. {_ADVICE}")
    ids = our_ids(size, pad=special[0], bos=special[1], eos=eos, unk=unk)
    model = with_our_ids(content, ids, name=name)
    vocabulary = Vocabulary(model, name=name, advice=_ADVICE)
    return _Side(model, tuple(vocabulary.pieces(range(vocabulary.size))), ids)


def _read_list(path: Path, content: bytes, size: int, *, side: str) -> _Side:
    """Reads a list of pieces; a SentencePiece model beside it splits the text."""
    foreign = _pieces_of(path, content)
    if len(foreign) < size:
        raise DataError(
            f"{path} has {len(foreign):,} pieces, and the model {size:,}. {_ADVICE}"
        )
    by_id = [foreign.get(number, f"<id_{number}>") for number in range(size)]
    try:
        eos, unk = by_id.index("</s>"), by_id.index("<unk>")
    except ValueError as error:
        raise DataError(f"{path} has no pieces </s> and <unk>. {_ADVICE}") from error
    pad = by_id.index("<pad>") if "<pad>" in by_id else None
    ids = our_ids(size, eos=eos, unk=unk, pad=pad)
    pieces = [
        SPECIAL_PIECES[number] if old is None or number < 4 else by_id[old]
        for number, old in enumerate(ids)
    ]
    splitter = path.with_name(f"{side}.spm")
    if splitter.is_file():
        spm = read_limited(splitter, max_bytes=MAX_VOCABULARY_BYTES, advice=_ADVICE)
        model = table_file(
            "sentencepiece_table", pieces, sentencepiece=spm, language_tokens=True
        )
    else:
        model = table_file("byte_pairs", pieces, merges=None)
    return _Side(model, tuple(pieces), ids)


def _pieces_of(path: Path, content: bytes) -> dict[int, str]:
    """Reads a list of pieces, `piece: id` or one a line, as pieces by id."""
    if path.suffix != ".txt":
        # JSON is YAML.
        return parse_ids(content, name=str(path))
    text = read_text(path, advice=_ADVICE)
    return dict(enumerate(text.removesuffix("\n").split("\n")))


def _source_keys(pair: VocabularyPair, *, shared_ids: bool) -> dict[str, Any]:
    if pair.shared:
        return {}
    keys: dict[str, Any] = {"vocabulary.source_size": pair.source.size}
    return {**keys, "vocabulary.shared_ids": True} if shared_ids else keys


def _decoding(decoder: Mapping[str, Any], network: Mapping[str, Any]) -> dict[str, Any]:
    beam, alpha = decoder.get("beam-size", _BEAM_SIZE), decoder.get("normalize", 0)
    factor = decoder.get("max-length-factor", _LENGTH_FACTOR)
    if not isinstance(beam, int) or not 1 <= beam <= _MAX_BEAM_SIZE:
        raise DataError(
            f"beam-size={short_repr(beam)} of the decoder's options must be a whole "
            f"number from 1 to {_MAX_BEAM_SIZE:,}. Change it, or remove the file."
        )
    for name, number in (("normalize", alpha), ("max-length-factor", factor)):
        _check_number(name, number)
    return {
        "decoding.beam_size": int(beam),
        # `normalize: true` is an exponent of 1.
        "decoding.length_penalty": float(alpha),
        "decoding.length_normalization": "power",
        "decoding.beam_rule": "shrinking",
        "decoding.max_length_ratio": float(factor),
        "decoding.allow_unk": bool(decoder.get("allow-unk", False)),
        **length_limits(network),
    }


def _check_number(name: str, number: object) -> None:
    # Comparisons with NaN are False.
    if not isinstance(number, int | float) or not abs(number) <= _MAX_NUMBER:
        raise DataError(
            f"{name}={short_repr(number)} of the decoder's options must be a number "
            f"of at most {_MAX_NUMBER:,.0f}. Change it, or remove the file."
        )


def _notes(
    decoder: Mapping[str, Any], options: ImportOptions, paths: Sequence[Path]
) -> tuple[str, ...]:
    notes = []
    if options.positions == "huggingface":
        notes.append(
            "Positions are computed as Hugging Face computes them, not as Marian, with "
            "which the model was trained: for comparisons."
        )
    if penalty := decoder.get("word-penalty", 0):
        _check_number("word-penalty", penalty)
        notes.append(f"word-penalty={penalty} is left out.")
    if paths[0].suffix in _LISTS and not paths[0].with_name("source.spm").is_file():
        notes.append("Text must be given in the pieces of its vocabulary.")
    return tuple(notes)
