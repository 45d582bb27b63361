"""Reads fairseq's dictionaries, and the codes or SentencePiece model beside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.vocabulary.byte_pairs import read_merges
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_limited, read_text

_CODES = ("bpecodes", "code", "codes")
_SENTENCEPIECE = ("sentencepiece.bpe.model", "spm.model")
_OVERWRITE = " #fairseq:overwrite"
_ADVICE = "Pass the dictionaries of this model."

_NOTE_TOKENS = (
    "Lines are split into subwords here; what was done to the training text before, "
    "such as Moses tokenization, has to be done to them first, and undone in outputs."
)
_NOTE_PIECES = (
    "There are no codes beside the model, so lines have to be given in pieces, "
    "separated by spaces; in the output they are joined at '@@'."
)


class FoundVocabularies(NamedTuple):
    """Vocabularies of a model.

    Attributes:
      files: that were read.
      notes: for the README.md of the model, a sentence each.
    """

    vocabularies: VocabularyPair
    files: tuple[Path, ...]
    notes: tuple[str, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """Sizes of source and target."""
        return self.vocabularies.source.size, self.vocabularies.target.size


def find_vocabularies(
    directory: Path, *, languages: Sequence[str], given: Sequence[Path]
) -> FoundVocabularies:
    """Reads the vocabularies of a model.

    Args:
      directory: has `dict.LANGUAGE.txt` of both sides, and may have codes of
        subword-nmt or fastBPE, or a SentencePiece model.
      languages: of source and target, if they are known.
      given: the dictionaries, or the one of both sides, in place of the directory's.

    Raises:
      DataError: a file is damaged.
      InputMissingError: a dictionary is missing.
    """
    dictionaries = _dictionaries(directory, languages=languages, given=given)
    texts = [_read_lines(path) for path in dictionaries]
    source, target = (
        read_dictionary(text, name=str(path))
        for path, text in zip(dictionaries, texts, strict=True)
    )
    splitter = next(
        (
            directory / name
            for name in (*_SENTENCEPIECE, *_CODES)
            if (directory / name).is_file()
        ),
        None,
    )
    if splitter is None:
        note, table = _NOTE_PIECES, partial(table_file, "byte_pairs", merges=None)
    elif splitter.name in _CODES:
        merges = read_merges(_read_lines(splitter), name=str(splitter))
        note, table = _NOTE_TOKENS, partial(table_file, "byte_pairs", merges=merges)
    else:
        note = f"Lines are split into pieces by {splitter.name}."
        model = read_limited(splitter, max_bytes=MAX_VOCABULARY_BYTES, advice=_ADVICE)
        table = partial(
            table_file,
            "sentencepiece_table",
            sentencepiece=model,
            language_tokens=False,
            moses="",
        )
    # A damaged file of pieces or of SentencePiece is found here.
    name = str(splitter or dictionaries[1])
    target_vocabulary = Vocabulary(table(target), name=name, advice=_ADVICE)
    source_vocabulary = target_vocabulary
    if source != target:
        source_vocabulary = Vocabulary(table(source), name=name, advice=_ADVICE)
    files = dict.fromkeys([*dictionaries, *([splitter] if splitter else [])])
    return FoundVocabularies(
        VocabularyPair(source_vocabulary, target_vocabulary), tuple(files), (note,)
    )


def read_dictionary(text: str, *, name: str) -> list[str]:
    r"""Reads a dictionary: a piece and its count on each line, after four special ones.

    Args:
      name: of the file, for messages.

    Returns:
      The pieces by our ids, which are fairseq's but for the first two.

    Raises:
      DataError: a line is not a piece and a count, or a piece is there twice.

    Example:
      >>> read_dictionary("the 7\nlo@@ 5\n", name="dict.en.txt")[4:]
      ['the', 'lo@@']
    """
    pieces: dict[str, None] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        # A piece that looks special may have an id of its own.
        piece, _, count = line.rstrip().removesuffix(_OVERWRITE).rpartition(" ")
        if not piece or not count.removeprefix("-").isdecimal() or piece in pieces:
            raise DataError(
                f"{name}, line {number:,}: {line[:40]!r} is not a new piece and its "
                f"count. {_ADVICE}"
            )
        pieces[piece] = None
    return [*SPECIAL_PIECES, *pieces]


def _dictionaries(
    directory: Path, *, languages: Sequence[str], given: Sequence[Path]
) -> tuple[Path, Path]:
    if given:
        return given[0], given[-1]
    if len(languages) == 2:
        source, target = (directory / f"dict.{name}.txt" for name in languages)
        if missing := [path for path in (source, target) if not path.is_file()]:
            raise InputMissingError(
                f"{missing[0]}: no such file. Copy the model's dictionaries beside it, "
                "or pass --vocabularies=SOURCE,TARGET."
            )
        return source, target
    raise InputMissingError(
        f"{directory}: the checkpoint does not name its languages, so its dictionaries "
        "are not known. Pass --vocabularies=dict.SOURCE.txt,dict.TARGET.txt."
    )


def _read_lines(path: Path) -> str:
    return read_text(path, advice=_ADVICE).replace("\r\n", "\n")
