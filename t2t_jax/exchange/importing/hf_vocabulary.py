"""Reads the vocabularies of a Hugging Face MarianTokenizer.

`source.spm` and `target.spm` split text, and `vocab.json` has the ids of the pieces;
the ids of the SentencePiece models are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.exchange.importing.hf_settings import Architecture
from t2t_jax.exchange.importing.imported import ImportOptions, Settings
from t2t_jax.exchange.importing.vocabularies import Ids, our_ids, pieces_by
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_json_object, read_limited
from t2t_jax.types import UNK

TOKENIZER = "tokenizer_config.json"
SPM = ("source.spm", "target.spm")
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"

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
    source_ids = _ids_of(tables[0], tokens, size) if tokens.separate else target_ids
    moses = (tokens.languages or ("en",))[0] if options.normalize else ""
    spm = [directory / name for name in SPM]
    source = _vocabulary(spm[0], tables[0], ids=source_ids, moses=moses)
    target = _vocabulary(spm[1], tables[-1], ids=target_ids, moses="")
    same = not tokens.separate and source.model == target.model
    return HFVocabularies(
        pair=VocabularyPair(target if same else source, target),
        ids=(source_ids, target_ids),
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
    size: int,
    special: Mapping[str, int] | None = None,
    *,
    bos: int | None = None,
) -> Ids:
    """Returns the foreign ids of a side, of which the special ones must differ.

    Args:
      special: those that the target must have; see `Architecture.ids`.
    """
    eos, unk = table.get(tokens.eos), table.get(tokens.unk)
    own = special or {"eos": eos, "pad": table.get(tokens.pad)}
    wanted, pad, start = (own.get(name) for name in ("eos", "pad", "decoder_start"))
    is_unk = unk is not None and unk not in (eos, pad, start)
    if eos is None or eos != wanted or eos == pad or not is_unk:
        raise DataError(
            f"A vocabulary must have {tokens.eos:.50} with id {wanted}, eos_token_id, "
            f"and {tokens.unk:.50} with another, not those of pad and start ({pad}, "
            f"{start}), and has {eos} and {unk}. Pass the vocabulary of the model."
        )
    return our_ids(size, pad=pad, bos=bos, eos=eos, unk=unk)


def _vocabulary(
    path: Path, table: Mapping[str, int], *, ids: Ids, moses: str
) -> Vocabulary:
    if not path.exists():
        raise InputMissingError(f"{path}: no such file. {_ADVICE}")
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
