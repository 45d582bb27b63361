"""Adds a language to a vocabulary: its tag, and pieces of its text.

SentencePiece joins new pieces only where it is done with those that it had, whose
scores are higher. New ids follow the old ones; but in a vocabulary of M2M-100 or
NLLB-200 the pieces stand before the languages, as in their tokenizers.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from t2t_jax.data.config import MAX_SUBWORDS, VocabularyConfig
from t2t_jax.data.vocabulary.sentencepiece_ids import parse_sentencepiece
from t2t_jax.data.vocabulary.tokenizers import LANGUAGE_CODE, table_file
from t2t_jax.data.vocabulary.vocabulary import (
    Vocabulary,
    sample_lines,
    table_of,
    train_sentencepiece,
)
from t2t_jax.errors import DataError, UserError
from t2t_jax.types import UNK

_WITH_SCRIPT = "[a-z]{3}_[A-Z][a-z]{3}"  # As NLLB-200 has them: gsw_Latn.
_NAME = "the vocabulary"
# Of rarer characters the pieces would be learned from a line or two.
_COVERAGE = 0.9995


class Extension(NamedTuple):
    """A vocabulary with more pieces.

    Attributes:
      rows: by id, the old ids whose mean the row of a matrix begins with: of an old
        piece its own, of the tag that of another language, of a new piece those that it
        was split into.
      learned: the new pieces, but for the tag.
    """

    vocabulary: Vocabulary
    rows: list[list[int]]
    learned: list[str]


def extend_vocabulary(
    vocabulary: Vocabulary,
    language: str,
    *,
    like: str,
    lines: Sequence[str] = (),
    pieces: int = 0,
    kept: Sequence[str] = (),
) -> Extension:
    """Adds the tag of a language, and pieces that SentencePiece learns from its text.

    Args:
      language: its code, in the form of `like`: `gsw`, or `gsw_Latn`.
      like: the language from whose tag the new one begins.
      lines: text of the language; pieces are learned from a sample of a million.
      pieces: at most this many new ones; new characters come first.
      kept: text that must be split as before: pieces that it would get are left out.

    Raises:
      UserError: the vocabulary has no tag of `like`, or has that of `language`, or
        a piece that is written like it, or is not of a kind that can be extended.
      DataError: the text is blank.

    Example:
      >>> words = ["a dog barks", "ein Hund bellt"] * 9
      >>> words = Vocabulary.train(words, 40, target_languages=["de"])
      >>> more, rows, learned = extend_vocabulary(
      ...     words, "gsw", like="de", lines=["en Hund bället"] * 9, pieces=1
      ... )
      >>> more.pieces(range(39, 42)), rows[39:], learned
      (['u', '>>gsw<<', 'ä'], [[39], [4], [3]], ['ä'])
    """
    old = vocabulary.pieces(range(vocabulary.size))
    table = _check(vocabulary, language, like=like, old=old)
    tag = old[vocabulary.tags[like]].replace(like, language)
    splitter = base64.b64decode(table["sentencepiece"]) if table else vocabulary.model
    known = {one.piece for one in parse_sentencepiece(splitter, name=_NAME).pieces}
    learned = _learn(lines, pieces, known=known | {*old, tag}) if pieces else []
    while True:
        more = _with_pieces(table, splitter, {language: tag}, learned)
        used = {*more.pieces({id_ for ids in more.encode(kept) for id_ in ids})}
        if not used & {*learned}:
            break
        learned = [one for one in learned if one not in used]
    splits = dict(zip(learned, _splits(splitter, learned, old), strict=True))
    splits[tag] = [vocabulary.tags[like]]
    numbers = iter(range(len(old)))
    pieces_of = more.pieces(range(more.size))
    rows = [splits[one] if one in splits else [next(numbers)] for one in pieces_of]
    return Extension(more, rows, learned)


def _check(
    vocabulary: Vocabulary, language: str, *, like: str, old: Sequence[str]
) -> dict[str, Any]:
    """Returns the table of a vocabulary that is one; {} of a SentencePiece model."""
    if not (tags := vocabulary.tags):
        such = "that was trained on corpora with languages, as text:a.en,a.de#en-de"
        raise UserError(
            f"The vocabulary has no tags of languages. Extend a model {such}."
        )
    has_script = re.fullmatch(_WITH_SCRIPT, like)
    form, such = (_WITH_SCRIPT, "gsw_Latn") if has_script else (LANGUAGE_CODE, "gsw")
    is_code = like in tags and re.fullmatch(form, language)
    # With the tag of another piece its row, and those after it, would be others.
    if not is_code or old[tags[like]].replace(like, language) in old:
        code = f"language={language} must be a new code, such as {such}"
        rest = f"whose tag is no piece, and like={like} one of {', '.join(tags)}"
        raise UserError(f"{code}, {rest}. Change them.")
    table = table_of(vocabulary)
    if table.get("kind", "sentencepiece_table") != "sentencepiece_table":
        raise UserError(
            f"The vocabulary is a table of the kind {table['kind']!r}, and only those "
            "of SentencePiece can be extended. Choose another model."
        )
    return table


def _learn(lines: Sequence[str], most: int, *, known: set[str]) -> list[str]:
    """Learns pieces that are not known: characters, then the most frequent pairs."""
    if not (sample := sample_lines(lines, VocabularyConfig.sample_sentences, seed=0)):
        rule = "The text of the new language must have lines, and is blank."
        raise DataError(f"{rule} Pass other text, or none, for its tag alone.")
    # So many that enough are new if all of the known ones are among them.
    size = min(5 + len(known) + most + len(set().union(*sample)), MAX_SUBWORDS)
    config = VocabularyConfig(size=size, character_coverage=_COVERAGE)
    model = train_sentencepiece(sample, config, key="pieces", is_limit=True)
    found = [one.piece for one in parse_sentencepiece(model, name=_NAME).pieces]
    new = [piece for piece in found if piece not in known]
    return sorted(new, key=lambda piece: len(piece) > 1)[:most]


def _with_pieces(
    table: dict[str, Any], splitter: bytes, tags: dict[str, str], learned: list[str]
) -> Vocabulary:
    """Appends tags by language, and pieces, to a SentencePiece model or a table."""
    proto = parse_sentencepiece(splitter, name=_NAME)
    lowest = min(one.score for one in proto.pieces)
    for tag in () if table else tags.values():
        proto.pieces.add(piece=tag, score=0.0, type=type(proto.pieces[0]).CONTROL)
    # Of a unigram model scores are log-probabilities, and of others ranks.
    step = 1e-3 if proto.trainer_spec.model_type == 1 else 1.0
    for number, piece in enumerate(learned, start=1):
        proto.pieces.add(piece=piece, score=lowest - number * step)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    content: bytes = proto.SerializeToString()
    if not table:
        return Vocabulary(content)
    options = {name: table[name] for name in table if name not in ("version", "kind")}
    options["sentencepiece"] = content
    pieces, languages = options.pop("pieces"), options["language_tokens"]
    first = len(pieces)
    if isinstance(languages, dict):
        options["language_tokens"] = {**languages, **tags}
        first = min(map(pieces.index, languages.values()))
    pieces = [*pieces[:first], *learned, *pieces[first:], *tags.values()]
    return Vocabulary(table_file(table["kind"], pieces, **options))


def _splits(splitter: bytes, learned: list[str], old: list[str]) -> list[list[int]]:
    """Returns the ids that a model splits each of these pieces into."""
    import sentencepiece

    proto = parse_sentencepiece(splitter, name=_NAME)
    # Else a space would be added to pieces within words, and taken from others.
    spec = proto.normalizer_spec
    spec.add_dummy_prefix = spec.remove_extra_whitespaces = False
    model = proto.SerializeToString()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = {piece: number for number, piece in enumerate(old)}
    split = processor.encode(learned, out_type=str)
    return [[ids.get(piece, UNK) for piece in parts] for parts in split]
