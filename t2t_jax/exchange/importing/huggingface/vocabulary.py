"""Reads the vocabularies of a Hugging Face MarianTokenizer.

`source.spm` and `target.spm` split text, and `vocab.json` has the ids of the pieces;
the ids of the SentencePiece models are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.huggingface.settings import Settings
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_json_object, read_limited
from t2t_jax.types import UNK

TOKENIZER = "tokenizer_config.json"
SPM = ("source.spm", "target.spm")
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"

Ids: TypeAlias = list[int | None]

_ADVICE = "Pass a complete model."


class HFVocabularies(NamedTuple):
    """The vocabularies of a model, and which rows of its matrices are theirs.

    Attributes:
      ids: the foreign id of each of ours, of source and target.
      unk: the foreign id of the unknown token of the target, if it has one.
      shared: whether both sides have the same pieces with the same ids.
      languages: of source and target, if the model names both.
      language_tokens: with which a source may begin, such as `>>de<<`.
    """

    pair: VocabularyPair
    ids: tuple[Ids, Ids]
    unk: int | None
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
    directory: Path, *, settings: Settings, bos: int | None, normalize: bool
) -> HFVocabularies:
    """Reads the vocabularies of both sides.

    Args:
      bos: the foreign id that becomes our bos, if one does.
      normalize: whether to normalize the punctuation of sources as Moses does.

    Raises:
      DataError: a file is damaged, or is not of the same model.
      InputMissingError: a file is missing.
      UserError: a package is not installed.
    """
    tokens = _read_tokens(directory)
    names = [VOCABULARY] + [TARGET_VOCABULARY] * tokens.separate
    sizes = [settings.vocab_size] + [settings.decoder_vocab_size] * tokens.separate
    if not tokens.separate and settings.vocab_size != settings.decoder_vocab_size:
        raise DataError(
            f"{directory}: one {VOCABULARY} requires equal vocab_size and "
            f"decoder_vocab_size. {_ADVICE}"
        )
    tables = [
        _read_table(directory / name, size)
        for name, size in zip(names, sizes, strict=True)
    ]
    target_ids = _ids_of(tables[-1], tokens, settings=settings, bos=bos, name=names[-1])
    source_ids = target_ids
    if tokens.separate:
        source_ids = _source_ids_of(tables[0], tokens, size=sizes[0])
    moses = (tokens.languages or ("en",))[0] if normalize else ""
    sides = []
    for name, table, ids, language in zip(
        SPM, (tables[0], tables[-1]), (source_ids, target_ids), (moses, ""), strict=True
    ):
        sides.append(_vocabulary(directory / name, table, ids=ids, moses=language))
    same = not tokens.separate and sides[0].model == sides[1].model
    return HFVocabularies(
        pair=VocabularyPair(sides[1] if same else sides[0], sides[1]),
        ids=(source_ids, target_ids),
        unk=tables[-1].get(tokens.unk),
        shared=not tokens.separate,
        languages=tokens.languages,
        language_tokens=tuple(filter(_is_language, tables[0])),
        files=tuple(
            directory / name
            for name in (*SPM, *names, TOKENIZER)
            if (directory / name).exists()
        ),
    )


def _read_tokens(directory: Path) -> _Tokens:
    values: Mapping[str, Any] = {}
    path = directory / TOKENIZER
    if path.exists():
        values = read_json_object(path, advice=_ADVICE)
    if values.get("tokenizer_class") not in (None, "MarianTokenizer"):
        raise DataError(
            f"{path}: tokenizer_class={short_repr(values['tokenizer_class'])} is not "
            "supported, only MarianTokenizer. Pass another model."
        )
    if values.get("sp_model_kwargs"):
        raise DataError(
            f"{path}: sp_model_kwargs={short_repr(values['sp_model_kwargs'])} is not "
            "supported. Remove it, if the text is to be split without."
        )
    eos, unk, pad = (
        _content(values.get(f"{name}_token"), default=default)
        for name, default in (("eos", "</s>"), ("unk", "<unk>"), ("pad", "<pad>"))
    )
    found = (values.get("source_lang"), values.get("target_lang"))
    languages = None
    if all(isinstance(one, str) and one.isalnum() for one in found):
        languages = (str(found[0]), str(found[1]))
    return _Tokens(eos, unk, pad, values.get("separate_vocabs") is True, languages)


def _content(token: object, *, default: str) -> str:
    """Returns a special token, which is a string or an object with its content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else default


def _read_table(path: Path, size: int) -> dict[str, int]:
    """Reads pieces and their ids, which must be different and below `size`."""
    if not path.exists():
        raise InputMissingError(f"{path}: no such file. {_ADVICE}")
    table = read_json_object(path, advice=_ADVICE)
    ids = table.values()
    if not all(type(one) is int and 0 <= one < size for one in ids):
        raise DataError(
            f"{path} must have ids from 0 to {size - 1:,}, the model's, and has "
            "others. Pass the vocabulary of the model."
        )
    if len(set(ids)) != len(table):
        raise DataError(
            f"{path} has several pieces with one id. Pass the vocabulary of the model."
        )
    return table


def _ids_of(
    table: Mapping[str, int],
    tokens: _Tokens,
    *,
    settings: Settings,
    bos: int | None,
    name: str,
) -> Ids:
    """Returns the foreign ids of the target, and of the source if it is the same."""
    unk = table.get(tokens.unk)
    if table.get(tokens.eos) != settings.eos:
        raise DataError(
            f"{name} must have {tokens.eos:.50} with id {settings.eos}, eos_token_id, "
            f"and has {table.get(tokens.eos)}. Pass the vocabulary of the model."
        )
    if unk is None or unk in (settings.eos, settings.pad, settings.start):
        raise DataError(
            f"{name} must have {tokens.unk:.50} with an id that is not that of pad, "
            f"start or eos, and has {unk}. Pass the vocabulary of the model."
        )
    if settings.pad == settings.eos:
        raise DataError(
            f"{name}: pad_token_id must not be eos_token_id, {settings.eos}. Pass "
            "another model."
        )
    specials = [settings.pad, bos, settings.eos, unk]
    rest = set(range(settings.decoder_vocab_size)) - {*specials, settings.start}
    return [*specials, *sorted(rest)]


def _source_ids_of(table: Mapping[str, int], tokens: _Tokens, *, size: int) -> Ids:
    """Returns the foreign ids of a source with its own vocabulary."""
    eos, unk, pad = (table.get(one) for one in (tokens.eos, tokens.unk, tokens.pad))
    if eos is None or unk is None or len({eos, unk, pad}) != 3:
        raise DataError(
            f"{VOCABULARY} must have {tokens.eos:.50} and {tokens.unk:.50}, with "
            "different ids. Pass the vocabulary of the model."
        )
    return [pad, None, eos, unk, *sorted(set(range(size)) - {pad, eos, unk})]


def _vocabulary(
    path: Path, table: Mapping[str, int], *, ids: Ids, moses: str
) -> Vocabulary:
    if not path.exists():
        raise InputMissingError(f"{path}: no such file. {_ADVICE}")
    model = read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=_ADVICE)
    names = {id_: piece for piece, id_ in table.items()}
    pieces = [
        *SPECIAL_PIECES,
        *(names.get(id_ or 0, f"<unused_{id_}>") for id_ in ids[UNK + 1 :]),
    ]
    if not moses and ids == [*range(len(ids))]:
        own = _own_vocabulary(model, pieces)
        if own is not None:
            return own
    content = table_file(
        "sentencepiece_table",
        pieces,
        sentencepiece=model,
        language_tokens=any(map(_is_language, table)),
        moses=moses,
    )
    return Vocabulary(content, name=str(path), advice=_ADVICE)


def _own_vocabulary(model: bytes, pieces: list[str]) -> Vocabulary | None:
    """Returns a SentencePiece model as it is, if its ids are ours and the table's."""
    try:
        vocabulary = Vocabulary(model)
    except DataError:
        return None
    if vocabulary.size != len(pieces):
        return None
    found = vocabulary.pieces(range(vocabulary.size))
    return vocabulary if found[UNK + 1 :] == pieces[UNK + 1 :] else None


def _is_language(piece: str) -> bool:
    return piece.startswith(">>") and piece.endswith("<<")
