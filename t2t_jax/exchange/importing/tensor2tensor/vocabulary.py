"""Reads the vocabularies of a model of tensor2tensor: subwords, or tokens by line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tensor2tensor import read_subwords
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.layout import our_ids
from t2t_jax.files import read_text

_RESERVED = ("<pad>", "<EOS>")
_UNKNOWN = "UNK"
_SUBWORDS, _TOKENS = "subwords", "byte_pairs"
_NOTE_TOKENS = (
    "The vocabulary has no rules to split text, so lines have to be given in its "
    "tokens, separated by spaces; in the output they are joined at '@@'."
)
_ADVICE = "Pass the vocabularies of this model."


class FoundVocabularies(NamedTuple):
    """Vocabularies of a model.

    Attributes:
      rows: of the matrices of source and target in the checkpoint.
      ids: for source and target, tensor2tensor's id of each of ours; None for those
        that it does not have.
      notes: for the README.md of the model, a sentence each.
    """

    vocabularies: VocabularyPair
    rows: tuple[int, int]
    ids: tuple[list[int | None], list[int | None]]
    files: tuple[Path, ...]
    notes: tuple[str, ...]


class _Side(NamedTuple):
    """A vocabulary.

    Attributes:
      kind: of `table_file`.
      subwords: by tensor2tensor's ids.
      rows: of its matrix.
    """

    kind: str
    subwords: tuple[str, ...]
    rows: int

    @property
    def ids(self) -> list[int | None]:
        """The foreign id of each of ours."""
        tokens = self.subwords if self.kind == _TOKENS else ()
        unk = tokens.index(_UNKNOWN) if _UNKNOWN in tokens else None
        return our_ids(self.rows, pad=0, eos=1, unk=unk)

    @property
    def model(self) -> bytes:
        """The content of a vocabulary file of ours."""
        # Subwords have `_` at their end only, and tokens have no space: no text is
        # encoded to these.
        mark = " " if self.kind == _TOKENS else "_"
        unused = [f"{mark}{number}" for number in range(len(self.subwords), self.rows)]
        names = [*self.subwords, *unused]
        pieces = [*SPECIAL_PIECES, *(names[one or 0] for one in self.ids[4:])]
        if self.kind == _TOKENS:
            return table_file(self.kind, pieces, merges=None)
        return table_file(self.kind, pieces)


def find_vocabularies(
    directory: Path, *, given: Sequence[Path], sizes: Collection[int], divisor: int
) -> FoundVocabularies:
    """Reads the vocabularies of a model.

    Args:
      directory: searched for one of the right size, if none is given.
      given: of source and target, or of both.
      sizes: rows of the checkpoint's vocabulary matrices.
      divisor: of these numbers, which may exceed those of the subwords for it.

    Raises:
      DataError: a file is not a vocabulary of tensor2tensor.
      InputMissingError: none, or more than one, is found.
    """
    if not given:
        given = _search(directory, sizes=sizes, divisor=divisor)
    files = tuple(dict.fromkeys(given))
    source, target = (_read(path, divisor=divisor) for path in (files[0], files[-1]))
    pair = [Vocabulary(target.model, name=str(files[-1]), advice=_ADVICE)] * 2
    if source != target:
        pair[0] = Vocabulary(source.model, name=str(files[0]), advice=_ADVICE)
    is_split = _TOKENS in (source.kind, target.kind)
    return FoundVocabularies(
        VocabularyPair(*pair),
        rows=(source.rows, target.rows),
        ids=(source.ids, target.ids),
        files=files,
        notes=(_NOTE_TOKENS,) if is_split else (),
    )


def _search(
    directory: Path, *, sizes: Collection[int], divisor: int
) -> tuple[Path, ...]:
    found = []
    for path in sorted(directory.glob("vocab*")):
        try:
            if _read(path, divisor=divisor).rows in sizes:
                found.append(path)
        except DataError:
            continue  # another file
    if len(found) != 1:
        wanted = " or ".join(f"{size:,}" for size in sorted(sizes))
        raise InputMissingError(
            f"{directory} must have one vocabulary of tensor2tensor, vocab.*, of "
            f"{wanted} subwords, and has {len(found)}. Copy it from the data of the "
            "training, or pass --vocabularies=FILE or --vocabularies=SOURCE,TARGET."
        )
    return tuple(found)


def _read(path: Path, *, divisor: int) -> _Side:
    text = read_text(path, advice=_ADVICE)
    is_tokens = text.startswith(_RESERVED[0])  # subwords are in quotes
    if is_tokens:
        subwords = [line.strip() for line in text.removesuffix("\n").split("\n")]
    else:
        subwords = read_subwords(text, name=str(path))
    if tuple(subwords[: len(_RESERVED)]) != _RESERVED:
        raise DataError(
            f"{path}: must begin with {' and '.join(_RESERVED)}, and begins with "
            f"{short_repr(subwords[:2])}. {_ADVICE}"
        )
    rows = len(subwords) + -len(subwords) % divisor
    return _Side(_TOKENS if is_tokens else _SUBWORDS, tuple(subwords), rows)
