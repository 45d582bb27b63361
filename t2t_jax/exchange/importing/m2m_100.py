"""Imports M2M100ForConditionalGeneration of Hugging Face: M2M-100 and NLLB-200.

It is fairseq's pre-norm Transformer: sinusoids from position 2, eos to start with. A
source begins with the token of its language, and an output with that of its own.

There are two tokenizers. M2M-100's has the ids of its pieces in `vocab.json`, and after
them `__de__` and the like. NLLB-200's takes those of its SentencePiece model, one
higher, then `deu_Latn` and the like, and `<mask>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.sentencepiece_ids import parse_sentencepiece
from t2t_jax.data.vocabulary.tokenizers import table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.hf_marian import (
    TOKENIZER,
    VOCABULARY,
    is_hf_marian,
    read_table,
    read_weights,
    search_of,
    stopping_notes,
    take_tables,
)
from t2t_jax.exchange.importing.hf_settings import (
    CONFIG,
    HF_EPSILON,
    M2M_100_IDS,
    Generation,
    read_architecture,
    read_generation,
)
from t2t_jax.exchange.importing.imported import ImportedModel, ImportOptions, Settings
from t2t_jax.exchange.importing.layout import read_params, torch_ignored, torch_layers
from t2t_jax.exchange.importing.vocabularies import Ids, our_ids, pieces_by
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_json_object, read_limited

SPM, FAST = "sentencepiece.bpe.model", "tokenizer.json"
SPECIAL_TOKENS, ADDED = "special_tokens_map.json", "added_tokens.json"
COMPUTED = {
    "norm_position": "pre",
    "position_rates": "tensor2tensor",
    "first_position": 2,
    "layer_norm_epsilon": HF_EPSILON,
    "attention_biases": True,
    "start": "eos",
}
"""Values of `config.model` by key, of what every such model computes."""

_MODEL_TYPE = re.compile(rb'"model_type"\s*:\s*"m2m_100"')
_LANGUAGE = re.compile(r"__([A-Za-z_]{2,20})__|([a-z]{3}_[A-Z][a-z]{3})")
_ADVICE = "Pass a complete model."
# The tokenizer of M2M-100 has these in its code, not in its files.
LANGUAGES = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr "
        "fy ga gd gl gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb "
        "lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si "
        "sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}
"""The languages of M2M-100's tokenizers by name, in the order of their ids."""
# Tokenizers that put tags where `Tokens` says; SMaLL-100's does not.
_CLASSES = "M2M100Tokenizer NllbTokenizer NllbTokenizerFast TokenizersBackend".split()
_LICENSES = {"M2M-100": "mit", "NLLB-200": "cc-by-nc-4.0"}


def is_m2m_100(path: Path) -> bool:
    """Returns whether a path is a directory of an M2M100ForConditionalGeneration."""
    if not is_hf_marian(path):
        return False
    with (path / CONFIG).open("rb") as file:
        return _MODEL_TYPE.search(file.read(1 << 16)) is not None


def read_m2m_100(path: Path, options: ImportOptions) -> ImportedModel:
    """Reads the directory of an M2M100ForConditionalGeneration.

    Args:
      path: with `config.json`, weights, `sentencepiece.bpe.model` and, of M2M-100,
        `vocab.json`; of NLLB-200, a file that has its languages.

    Raises:
      DataError: a file is damaged or of another model, or the model is not supported.
      InputMissingError: a file is missing.
    """
    architecture = read_architecture(path, "m2m_100")
    generation = read_generation(path, architecture=architecture, has_languages=True)
    tokens = read_tokens(path, architecture.sizes[0])
    source, weights = read_weights(path)
    model = {**architecture.model, **COMPUTED}
    if tokens.tag_is_last:
        model["tag_position"] = "last"
    tables, _ = take_tables(source, architecture)
    layers, ids = torch_layers(source, prefix="model."), (tokens.ids, tokens.ids)
    ignored = torch_ignored("model.")
    special, unk = {0, 1, *tokens.tags.values()}, M2M_100_IDS["unk"]
    return ImportedModel(
        model=model,
        search=search_of(generation, architecture.marker, special=special, unk=unk),
        params=read_params(source, model, layers, tables, ids, ignored=ignored),
        vocabularies=VocabularyPair(tokens.vocabulary, tokens.vocabulary),
        files=(*weights, *tokens.files),
        notes=_notes(tokens, generation),
        license=_LICENSES[tokens.kind],
    )


class Tokens(NamedTuple):
    """What the files of a tokenizer give.

    Attributes:
      kind: "M2M-100" or "NLLB-200".
      ids: the foreign id of each of ours.
      tags: the foreign id of each language.
      tag_is_last: whether a source has its language after its eos, as NLLB-200 had at
        first.
    """

    kind: str
    vocabulary: Vocabulary
    ids: Ids
    tags: Mapping[str, int]
    files: tuple[Path, ...]
    tag_is_last: bool


def read_tokens(directory: Path, size: int) -> Tokens:
    """Reads a tokenizer.

    Args:
      size: of the vocabulary, ids without a piece included.

    Raises:
      DataError: a file is damaged, or they are not of one model.
      InputMissingError: a file is missing.
    """
    if not (path := directory / SPM).exists():
        raise InputMissingError(
            f"{path}: no such file. Copy it from the published model: Transformers "
            "leaves it out of what it saves."
        )
    splitter = read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=_ADVICE)
    named = _read(directory, TOKENIZER).get("tokenizer_class")
    is_m2m = named == "M2M100Tokenizer" or (directory / VOCABULARY).exists()
    names = _m2m_names(directory, size) if is_m2m else _nllb_names(path, splitter)
    used = len(names)
    _add(names, directory, size=size, is_m2m=is_m2m)
    languages = {
        found[1] or found[2]: id_
        for id_, name in sorted(names.items())
        if id_ >= used and (found := _LANGUAGE.fullmatch(name))
    }
    if not languages:
        raise InputMissingError(
            f"{directory} names no languages: {FAST}, {TOKENIZER} or {SPECIAL_TOKENS} "
            "has them, such as deu_Latn. Copy these files from the published model."
        )
    ids = our_ids(size, **M2M_100_IDS)
    content = table_file(
        "sentencepiece_table",
        pieces_by(names, ids),
        sentencepiece=splitter,
        language_tokens={one: names[id_] for one, id_ in languages.items()},
        source_tag="source",
    )
    vocabulary = Vocabulary(content, name=str(path), advice=_ADVICE)
    known = (VOCABULARY, FAST, TOKENIZER, SPECIAL_TOKENS)
    files = (path, *filter(Path.exists, map(directory.joinpath, known)))
    kind = "M2M-100" if is_m2m else "NLLB-200"
    tag_is_last = not is_m2m and _read(directory, TOKENIZER).get("legacy_behaviour")
    return Tokens(kind, vocabulary, ids, languages, files, tag_is_last is True)


def _add(names: dict[int, str], directory: Path, *, size: int, is_m2m: bool) -> None:
    """Adds tokens to pieces, and checks that each has an id and each id one of them."""
    if (found := tuple(map(names.get, range(len(_SPECIAL))))) != _SPECIAL:
        raise DataError(
            f"{directory}: the ids from 0 must be those of {', '.join(_SPECIAL)}, and "
            f"are those of {short_repr(found)}. {_ADVICE}"
        )
    for id_, name in _added(directory, len(names), is_m2m=is_m2m):
        if names.setdefault(id_, name) != name:
            raise DataError(
                f"{directory}: id {id_} is {names[id_]!r:.50} in one file and "
                f"{name!r:.50} in another. Pass the files of one model."
            )
    most, different = max(names), len({*names.values()})
    if most >= size or different < len(names):
        raise DataError(
            f"{directory}: its tokenizer must have different pieces with ids below "
            f"{size:,}, the vocab_size of {CONFIG}, and has {len(names):,} with ids to "
            f"{most:,}, {different:,} of them different. Pass the files of one model."
        )


def _m2m_names(directory: Path, size: int) -> dict[int, str]:
    """Returns the pieces of M2M-100 by their ids."""
    table = read_table(directory / VOCABULARY, size)
    return {id_: piece for piece, id_ in table.items()}


_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def _nllb_names(path: Path, splitter: bytes) -> dict[int, str]:
    """Returns the pieces of NLLB-200 by their ids: SentencePiece's, one higher."""
    pieces = [one.piece for one in parse_sentencepiece(splitter, name=str(path)).pieces]
    # SentencePiece begins with <unk>, <s> and </s>.
    special = [*pieces[1:2], "<pad>", *pieces[2:3], *pieces[:1]]
    return dict(enumerate([*special, *pieces[3:]]))


def _added(directory: Path, used: int, *, is_m2m: bool) -> Iterator[tuple[int, str]]:
    """Yields the tokens that other files than the pieces' have, and their ids.

    Args:
      used: ids of pieces; what has no id of its own follows them.
    """
    known = (FAST, TOKENIZER, SPECIAL_TOKENS)
    fast, tokenizer, special = (_read(directory, name) for name in known)
    values = Settings(tokenizer, name=directory / TOKENIZER)
    if values.get("tokenizer_class") not in (None, *_CLASSES):
        values.refuse("tokenizer_class", ", ".join(_CLASSES))
    if is_m2m:
        names = LANGUAGES[values.choice("language_codes", LANGUAGES, default="m2m100")]
        yield from enumerate((f"__{name}__" for name in names.split()), used)
    listed = fast.get("added_tokens")
    tokens = [*map(_object, listed if isinstance(listed, list) else [])]
    for id_, one in _object(tokenizer, "added_tokens_decoder").items():
        number = int(id_) if re.fullmatch("[0-9]{1,7}", id_) else None
        tokens.append({**_object(one), "id": number})
    _refuse_ordinary(tokens, _read(directory, ADDED), directory)
    named = ((one.get("content"), one.get("id")) for one in tokens)
    explicit: list[tuple[Any, Any]] = [*_object(fast, "model", "vocab").items(), *named]
    for piece, id_ in explicit:
        if not isinstance(piece, str) or type(id_) is not int or id_ < 0:
            raise DataError(
                f"{directory}: {FAST} or {TOKENIZER} has {short_repr(piece)} with the "
                f"id {short_repr(id_)}. {_ADVICE}"
            )
        yield id_, piece
    if not explicit and not is_m2m:
        key = "additional_special_tokens"
        found = special.get(key) or tokenizer.get(key)
        listed = found if isinstance(found, list) else []
        contents = (_object(one).get("content", one) for one in listed)
        yield from enumerate(map(str, contents), used)


def _refuse_ordinary(
    tokens: Iterable[Mapping[str, Any]], others: Mapping[str, Any], directory: Path
) -> None:
    """Refuses what `add_tokens` added, which is taken out of a text before all else.

    Args:
      others: ids by token, of earlier tokenizers.
    """
    known = {"<mask>", *_SPECIAL}
    added = [one.get("content") for one in tokens if one.get("special") is False]
    for name in map(str, (*added, *others)):
        if not (name in known or _LANGUAGE.fullmatch(name)):
            raise DataError(
                f"{directory}: its tokenizer has the added token {short_repr(name)}, "
                "which it takes out of a text before SentencePiece reads it. Such "
                "models are not supported. Pass another model."
            )


def _notes(tokens: Tokens, generation: Generation) -> tuple[str, ...]:
    terms = {"mit": "MIT", "cc-by-nc-4.0": "CC BY-NC 4.0, not for commercial use,"}
    return (
        f"By its tokenizer it is a model of {tokens.kind}. The published weights have "
        f"the licence {terms[_LICENSES[tokens.kind]]} and with them what is trained "
        "from them. Imports were tested with random and briefly trained models, and "
        "not run on the published weights.",
        "A source begins with the token of its language, and an output with that of "
        f"its own: one of {len(tokens.tags):,}, such as `{next(iter(tokens.tags))}`."
        + " That of a source has the last position (`legacy_behaviour`)."
        * tokens.tag_is_last,
        "If the model was trained with LayerDrop, further training here lacks it.",
        *stopping_notes(generation),
    )


def _read(directory: Path, name: str) -> dict[str, Any]:
    """Reads a file of JSON; {} if it is not there."""
    path = directory / name
    return read_json_object(path, advice=_ADVICE) if path.exists() else {}


def _object(values: Any, *keys: str) -> dict[str, Any]:
    """Returns an object, or one within it; {} if there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}
