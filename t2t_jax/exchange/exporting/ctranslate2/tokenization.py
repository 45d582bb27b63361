"""How users of a CTranslate2 model split text into pieces, and join them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary

_SENTENCEPIECE = """\
import ctranslate2, sentencepiece

source = sentencepiece.SentencePieceProcessor("{name}/{source}")
target = sentencepiece.SentencePieceProcessor("{name}/{target}")"""
_OWN = """\
import ctranslate2
from t2t_jax.data.vocabulary.vocabulary import Vocabulary

source = Vocabulary.load("{name}/{source}")
target = Vocabulary.load("{name}/{target}")
ids = {{piece: id_ for id_, piece in enumerate(target.pieces(range(target.size)))}}"""


class Tokenization(NamedTuple):
    """Python code.

    Attributes:
      packages: to install.
      setup: makes `source` and `target`.
      encode: the pieces of a sentence.
      decode: a text of pieces.
      note: what the text needs besides, a sentence, or "".
    """

    packages: str
    setup: str
    encode: str
    decode: str
    note: str = ""


def tokenization_of(
    vocabularies: VocabularyPair, *, name: str, sentence: str
) -> Tokenization:
    """Returns the code for the vocabularies of a model.

    Args:
      name: of the directory with what `write_tokenizers` wrote.
      sentence: Python's literal of an example.
    """
    shared = vocabularies.shared
    names = ["vocab.model" if shared else "vocab_source.model", "vocab.model"]
    tables = [_table_of(side) for side in vocabularies]
    kinds = {table.get("kind", "") for table in tables}
    if kinds <= {"", "sentencepiece_table"}:
        for number, side in enumerate(("source", "target")):
            if tables[number]:
                names[number] = f"{side}.spm"
        return Tokenization(
            packages="CTranslate2 and SentencePiece (`pip install ctranslate2 "
            "sentencepiece`)",
            setup=_SENTENCEPIECE.format(name=name, source=names[0], target=names[1]),
            encode=f"source.encode({sentence}, out_type=str)",
            decode="target.decode({})",
            note=_note(tables[0]),
        )
    return Tokenization(
        packages="CTranslate2, and t2t_jax for its vocabulary",
        setup=_OWN.format(name=name, source=names[0], target=names[1]),
        encode=f"source.pieces(source.encode([{sentence}])[0])",
        decode="target.decode([[ids[piece] for piece in {}]])[0]",
    )


def write_tokenizers(to: Path, vocabularies: VocabularyPair) -> None:
    """Writes the vocabularies, and the SentencePiece models of tables."""
    vocabularies.save(to)
    for name, side in zip(("source", "target"), vocabularies, strict=True):
        if encoded := _table_of(side).get("sentencepiece"):
            (to / f"{name}.spm").write_bytes(base64.b64decode(encoded))


def _table_of(vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns the table of a vocabulary of another toolkit, or {}."""
    is_table = vocabulary.model.startswith(b"{")
    table: dict[str, Any] = json.loads(vocabulary.model) if is_table else {}
    return table


def _note(table: dict[str, Any]) -> str:
    notes = []
    if table.get("language_tokens"):
        notes.append(
            "A language token such as `>>de<<` is a piece of its own, before those of "
            "the sentence."
        )
    if language := table.get("moses"):
        notes.append(
            "Sentences must be normalized first, with "
            f'`sacremoses.MosesPunctNormalizer("{language}").normalize`.'
        )
    return " ".join(notes)
