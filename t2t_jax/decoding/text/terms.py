"""Terms that translations must contain: text to tokens, and back."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.data.line_arguments import as_lines
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.decoding.search.term_constraint import TermConstraint, TermRows, term_rows
from t2t_jax.errors import DataError, UserError

if TYPE_CHECKING:
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary

_SPACE = "\u2581"
_JOINT = "@@"
# Scripts without spaces between words: there a term may stand anywhere.
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_WORD = re.compile(r"\w")


def as_terms(terms: Iterable[Iterable[str]], *, caller: str) -> list[list[str]]:
    """Returns the terms of each line as lists.

    Raises:
      TypeError: a line's terms are a single string, or hold something else than
        strings.

    Example:
      >>> as_terms([("Hund", "rotes Haus"), ()], caller="translate")
      [['Hund', 'rotes Haus'], []]
    """
    return [as_lines(line, caller=caller, noun="terms of a line") for line in terms]


class Term(NamedTuple):
    """A word or phrase that a translation must contain.

    Attributes:
      text: as the vocabulary writes it.
      tokens: in the target vocabulary.
      ends_word: whether it ends with a word, which must not go on.
    """

    text: str
    tokens: tuple[int, ...]
    ends_word: bool


class TermEncoder:
    """Encodes terms with a target vocabulary.

    A term begins where a word begins and ends where a word ends, in scripts that have
    spaces between words.
    """

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary

    @functools.cached_property
    def constraint(self) -> TermConstraint:
        """The constraint of a search, with the parts of words of the vocabulary."""
        pieces = self._vocabulary.pieces(range(self._vocabulary.size))
        joins, goes_on = word_joints(pieces)
        return TermConstraint(joins_V=np.asarray(joins), goes_on_V=np.asarray(goes_on))

    def encode(
        self, terms: Sequence[Sequence[str]], *, num_lines: int, first: int = 0
    ) -> list[tuple[Term, ...]]:
        """Encodes the terms of each line; one that is given twice counts once.

        Args:
          terms: of each line.
          num_lines: the number of lines that are translated.
          first: the number of line 0 in the complete text, for messages.

        Raises:
          DataError: a term is blank, or has characters that the vocabulary lacks.
          UserError: the numbers of lines and lists of terms differ.
        """
        if len(terms) != num_lines:
            raise UserError(
                f"Every line needs a list of terms, but there are {num_lines} lines "
                f"and {len(terms)} lists. Pass as many, empty ones for no terms."
            )
        problems = LineProblems()
        texts = list(dict.fromkeys(term for line in terms for term in line))
        ids = self._vocabulary.encode(texts)
        known = {
            text: self._make_term(text, tokens)
            for text, tokens in zip(texts, ids, strict=True)
        }
        for number, line in enumerate(terms, start=first + 1):
            for text in dict.fromkeys(line):
                if reason := _problem(text, known[text]):
                    problems.add(f"Line {number}: {reason}")
        problems.raise_if_any(DataError)
        return [tuple(dict.fromkeys(known[text] for text in line)) for line in terms]

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        pieces = self._vocabulary.pieces(range(self._vocabulary.size))
        return {piece: number for number, piece in enumerate(pieces)}

    def _make_term(self, text: str, tokens: Sequence[int]) -> Term:
        first = "".join(self._vocabulary.pieces(tokens[:1]))
        if first.startswith(_SPACE) and _NO_SPACES.match(text.strip()):
            # There is no space before it inside of a sentence.
            bare = [self._ids[first[1:]]] if first[1:] in self._ids else []
            if bare or first == _SPACE:
                tokens = [*bare, *tokens[1:]]
        (written,) = self._vocabulary.decode([tokens])
        written = written.strip()
        return Term(written, tuple(tokens), ends_word=_is_word(written[-1:]))


def _problem(text: str, term: Term) -> str:
    """Returns why a term cannot be required, or ""."""
    if not text.strip() or not term.tokens:
        return (
            "a term is empty. Separate terms by one tab each, and leave lines without "
            "terms empty."
        )
    if DEFAULT_IDS.unk in term.tokens:
        return (
            f"the term {text!r} has characters that the target vocabulary does not "
            "have, so that no translation can contain it. Remove it, or write it "
            "otherwise."
        )
    return ""


def word_joints(pieces: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Returns which pieces continue the word before them, and which go on after them.

    SentencePiece marks the beginning of words (`▁`), subword-nmt the parts of words
    that go on (`@@`), and tensor2tensor the ends of words (`_`); words by themselves
    have neither.

    Example:
      >>> word_joints(["▁low", "est", ".", "<0x0A>"])
      ([False, True, False, True], [False, False, False, False])
      >>> word_joints(["lo@@", "w"])
      ([False, False], [True, False])
    """
    none = [False] * len(pieces)
    if any(piece.startswith(_SPACE) for piece in pieces):
        return [_continues(piece) for piece in pieces], none
    if any(piece.endswith(_JOINT) for piece in pieces):
        return none, [piece.endswith(_JOINT) for piece in pieces]
    ends = [piece.endswith("_") for piece in pieces]
    if sum(ends) > len(pieces) // 10:  # of tensor2tensor
        return none, [not end for end in ends]
    return none, none


def _continues(piece: str) -> bool:
    if piece.startswith("<0x"):  # a byte of some character
        return True
    return bool(_WORD.match(piece)) and not _NO_SPACES.match(piece)


def missing_terms(text: str, terms: Iterable[Term]) -> tuple[str, ...]:
    """Returns the terms that a translation does not contain, as they are written.

    Example:
      >>> missing_terms("Die Hunde.", [Term("Hund", (5,), True)])
      ('Hund',)
      >>> missing_terms("Die Hunde.", [Term("Hunde", (5, 6), True)])
      ()
    """
    return tuple(term.text for term in terms if not _contains(text, term.text))


def _contains(text: str, term: str) -> bool:
    before = r"(?<!\w)" if _is_word(term[:1]) else ""
    after = r"(?!\w)" if _is_word(term[-1:]) else ""
    return re.search(f"{before}{re.escape(term)}{after}", text) is not None


def _is_word(character: str) -> bool:
    return bool(_WORD.match(character)) and not _NO_SPACES.match(character)


def terms_within_limit(
    terms: Sequence[Term], *, limit: int, prefix: int = 0
) -> tuple[Term, ...]:
    """Returns the first terms that fit an output, after its prefix and before its eos.

    Args:
      limit: most tokens of the output, the eos included.
      prefix: tokens of the forced prefix.

    Example:
      >>> one, two = Term("a b", (5, 6), True), Term("c", (7,), True)
      >>> terms_within_limit([one, two], limit=3)
      (Term(text='a b', tokens=(5, 6), ends_word=True),)
    """
    kept: list[Term] = []
    left = limit - prefix - 1
    for term in terms:
        if len(term.tokens) <= left:
            kept.append(term)
            left -= len(term.tokens)
    return tuple(kept)


class TermShape(NamedTuple):
    """Axes of the arrays of terms, the same for all batches: each is a program.

    Attributes:
      terms: K, of a line.
      tokens: L, of a term.
    """

    terms: int
    tokens: int


def term_shape(terms: Sequence[Sequence[Term]]) -> TermShape | None:
    """Chooses powers of 2 that hold the terms of all segments; None without terms.

    Example:
      >>> term_shape([[Term("a", (5, 6, 7), True)] * 3])
      TermShape(terms=4, tokens=4)
    """
    count = max(map(len, terms), default=0)
    if not count:
        return None
    length = max(len(term.tokens) for line in terms for term in line)
    return TermShape(_power_of_2(count), _power_of_2(length))


def _power_of_2(number: int) -> int:
    return 1 << (number - 1).bit_length()


def make_term_rows(
    terms: Sequence[Sequence[Term]], *, rows: int, shape: TermShape
) -> TermRows:
    """Makes the arrays of a batch; rows beyond the segments have no terms."""
    terms = [*terms, *[()] * (rows - len(terms))]
    return term_rows(
        [[term.tokens for term in line] for line in terms],
        ends_word=[[term.ends_word for term in line] for line in terms],
        count=shape.terms,
        length=shape.tokens,
    )
