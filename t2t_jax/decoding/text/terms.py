"""Terms that translations must contain: text to tokens, and back."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.data.token_cache.filters import SPACELESS
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.term_constraint import TermConstraint, term_rows
from t2t_jax.decoding.text.segments import Segment, Term
from t2t_jax.decoding.text.stages import Inputs, Stage
from t2t_jax.decoding.text.translation import Translation
from t2t_jax.errors import DataError, UserError
from t2t_jax.types import UNK

if TYPE_CHECKING:
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary

_SPACE = "\u2581"
_JOINT = "@@"
# Without spaces between words a term may stand anywhere.
_NO_SPACES = re.compile(f"[{SPACELESS}]")
_WORD = re.compile(r"\w")


def check_terms(config: DecodingConfig) -> None:
    """Checks that terms can be required with a configuration.

    Raises:
      UserError: it samples, or has another constraint.
    """
    if config.sample:
        raise UserError(
            "Terms are a constraint of a beam search: not with decoding.sample=True. "
            "Leave the terms out, or set decoding.sample=false."
        )
    if config.constraint != "none":
        raise UserError(
            "Terms are a constraint of a beam search, and a search has one: not with "
            f"decoding.constraint={config.constraint}. Leave the terms out, or set "
            "decoding.constraint=none."
        )


class TermEncoder:
    """Encodes terms with a target vocabulary.

    A term begins where a word begins and ends where a word ends, in scripts that have
    spaces between words.
    """

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary

    @functools.cached_property
    def _pieces(self) -> list[str]:
        return self._vocabulary.pieces(range(self._vocabulary.size))

    @functools.cached_property
    def constraint(self) -> TermConstraint:
        """The constraint of a search, with the parts of words of the vocabulary."""
        joins, goes_on = word_joints(self._pieces)
        return TermConstraint(joins_V=np.asarray(joins), goes_on_V=np.asarray(goes_on))

    def encode(
        self, terms: Sequence[Sequence[str]], *, first: int = 0
    ) -> list[tuple[Term, ...]]:
        """Encodes the terms of each line; one that is given twice counts once.

        Args:
          terms: of each line.
          first: the number of line 0 in the complete text, for messages.

        Raises:
          DataError: a term is blank, or has characters that the vocabulary lacks.
        """
        problems = LineProblems()
        texts = list(dict.fromkeys(term for line in terms for term in line))
        made = map(self._make_term, texts, self._vocabulary.encode(texts))
        known = dict(zip(texts, made, strict=True))
        for number, line in enumerate(terms, start=first + 1):
            for text in dict.fromkeys(line):
                if reason := _problem(text, known[text]):
                    problems.add(f"Line {number}: {reason}")
        problems.raise_if_any(DataError)
        return [tuple(dict.fromkeys(known[text] for text in line)) for line in terms]

    def _make_term(self, text: str, tokens: Sequence[int]) -> Term:
        first = "".join(self._vocabulary.pieces(tokens[:1]))
        if first.startswith(_SPACE) and _NO_SPACES.match(text.strip()):
            # There is no space before it inside of a sentence.
            is_known = first[1:] in self._pieces
            bare = [self._pieces.index(first[1:])] if is_known else []
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
    if UNK in term.tokens:
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
        # `<0x0A>` is a byte of some character.
        return [p.startswith("<0x") or _is_word(p) for p in pieces], none
    if any(piece.endswith(_JOINT) for piece in pieces):
        return none, [piece.endswith(_JOINT) for piece in pieces]
    ends = [piece.endswith("_") for piece in pieces]
    if sum(ends) > len(pieces) // 10:  # of tensor2tensor
        return none, [not end for end in ends]
    return none, none


def missing_terms(text: str, terms: Iterable[Term]) -> tuple[str, ...]:
    """Returns the terms that a translation does not contain, as they are written.

    Example:
      >>> missing_terms("Die Hunde.", [Term("Hund", (5,), True)])
      ('Hund',)
      >>> missing_terms("Die Hunde.", [Term("Hunde", (5, 6), True)])
      ()
    """
    return tuple(one.text for one in terms if not re.search(_pattern(one.text), text))


def _pattern(term: str) -> str:
    before = r"(?<!\w)" if _is_word(term[:1]) else ""
    after = r"(?!\w)" if _is_word(term[-1:]) else ""
    return f"{before}{re.escape(term)}{after}"


def _is_word(character: str) -> bool:
    return bool(_WORD.match(character)) and not _NO_SPACES.match(character)


@dataclasses.dataclass
class TermStage(Stage):
    """Makes the translations of lines contain their terms.

    Raises:
      DataError: as in `TermEncoder.encode`.
    """

    terms: Sequence[Sequence[str]]
    encoder: TermEncoder
    config: DecodingConfig
    first: int

    def __post_init__(self) -> None:
        self._terms = self.encoder.encode(self.terms, first=self.first)
        self.whole = {number for number, line in enumerate(self.terms) if line}

    def prepare(self, segments: list[Segment]) -> None:
        """Adds those terms that fit the output; none to a line that is split.

        Nothing says to which part of a line they belong.
        """
        split = {segment.line for segment in segments if segment.part}
        for index, segment in enumerate(segments):
            if segment.line not in split:
                segments[index] = segment._replace(terms=self._fitting_terms(segment))
        counts = [len(segment.terms) for segment in segments]
        if any(counts):
            lengths = [len(term.tokens) for one in segments for term in one.terms]
            # K and L, the same for all batches: each shape is a program.
            self.key = tuple(1 << (max(n) - 1).bit_length() for n in (counts, lengths))

    def _fitting_terms(self, segment: Segment) -> tuple[Term, ...]:
        """Returns the first terms that fit after the prefix and before the eos."""
        kept = []
        left = segment.longest_output(self.config) - len(segment.prefix) - 1
        for term in self._terms[segment.line - self.first]:
            if len(term.tokens) <= left:
                kept.append(term)
                left -= len(term.tokens)
        return tuple(kept)

    def inputs(self, segments: Sequence[Segment], rows: int, max_length: int) -> Inputs:
        """Makes the constraint and its arrays; nothing if no line has terms."""
        if self.key is None:
            return {}
        terms = [segment.terms for segment in segments]
        terms += [()] * (rows - len(terms))
        count, length = self.key
        arrays = term_rows(
            [[term.tokens for term in line] for line in terms],
            ends_word=[[term.ends_word for term in line] for line in terms],
            count=count,
            length=length,
        )
        return {"constraint": self.encoder.constraint, "constraint_rows": arrays}

    def finish(self, number: int, translation: Translation) -> Translation:
        """Notes the terms that the translation does not contain."""
        unmet = missing_terms(translation.text, self._terms[number])
        return dataclasses.replace(translation, unmet_terms=unmet)
