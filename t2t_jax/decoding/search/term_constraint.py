"""Terms that have to appear in an output: a constraint with banks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.search.constraint import Constraint
from t2t_jax.types import PAD, Array


class TermRows(NamedTuple):
    """The terms of each sentence; `term_rows` makes them.

    Attributes:
      tokens_BxKxL: [B, K, L] int32, pad after the end of a term, and for no term.
      is_suffix_BxKxMxL: [B, K, L + 1, L] bool, whether the first l tokens of a term
        are the last ones of its first m.
      ends_word_BxK: [B, K] bool, whether the word with which a term ends must not go
        on after it.
    """

    tokens_BxKxL: Array
    is_suffix_BxKxMxL: Array
    ends_word_BxK: Array


class TermState(NamedTuple):
    """What a hypothesis has of its terms.

    Attributes:
      has_term_BxWxK: [B, W, K] bool, whether a term has appeared, and ended.
      matched_BxWxK: [B, W, K] int32, how many of the first tokens of a term are the
        last tokens of the hypothesis.
      word_goes_on_BxW: [B, W] bool, whether the next token belongs to the same word.
    """

    has_term_BxWxK: Array
    matched_BxWxK: Array
    word_goes_on_BxW: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TermConstraint(Constraint):
    """Every output contains the terms of its sentence, each a sequence of tokens.

    Terms may overlap and appear in any order. A term that is begun and not continued
    can begin again. Hypotheses are in banks after the number of tokens of terms that
    they have, so that some always make progress: all terms are there after as many
    tokens as they have together, unless the limit of the output is lower.

    Source: dynamic beam allocation, Post and Vilar 2018 (arXiv 1804.06609); several
    terms of a sentence at once, Hu et al. 2019 (N19-1090).

    Attributes:
      joins_V: [V] bool, whether a token continues the word before it.
      goes_on_V: [V] bool, whether the word of a token continues after it.

    Example:
      >>> words_V = jnp.zeros(9, bool)
      >>> rule = TermConstraint(joins_V=words_V, goes_on_V=words_V)
      >>> rows = jax.tree.map(jnp.asarray, term_rows([[[5, 6], [7]]]))
      >>> state = rule.init(rows, limits_B=jnp.array([9]), num_beams=1)
      >>> for token in (5, 8, 5, 6):
      ...     print(rule.banks(state, rows)[0], rule.wanted(state, rows)[0, 0])
      ...     state = rule.advance(state, rows, tokens_BxW=jnp.array([[token]]))
      [0] [5 7]
      [1] [6 7]
      [0] [5 7]
      [1] [6 7]
      >>> rule.banks(state, rows).item(), rule.may_end(state, rows).item()
      (2, False)
    """

    joins_V: Array
    goes_on_V: Array

    def init(self, rows: TermRows, *, limits_B: Array, num_beams: int) -> TermState:
        """Returns the state of empty hypotheses."""
        size, count, _ = rows.tokens_BxKxL.shape
        return TermState(
            has_term_BxWxK=jnp.zeros((size, num_beams, count), bool),
            matched_BxWxK=jnp.zeros((size, num_beams, count), jnp.int32),
            word_goes_on_BxW=jnp.zeros((size, num_beams), bool),
        )

    def may_end(self, state: TermState, rows: TermRows) -> jax.Array:
        """Returns which hypotheses have all terms."""
        return jnp.all(_is_met(state, rows), axis=-1)

    def wanted(self, state: TermState, rows: TermRows) -> jax.Array:
        """Returns the next token of each term that is missing, or pad: [B, W, K]."""
        is_met_BxWxK = _is_met(state, rows)
        length = rows.tokens_BxKxL.shape[2]
        next_BxWxKx1 = jnp.minimum(state.matched_BxWxK, length - 1)[..., None]
        tokens_Bx1xKxL = jnp.asarray(rows.tokens_BxKxL)[:, None]
        tokens_BxWxKx1 = jnp.take_along_axis(tokens_Bx1xKxL, next_BxWxKx1, axis=3)
        return jnp.where(is_met_BxWxK, PAD, tokens_BxWxKx1[..., 0])

    def advance(
        self, state: TermState, rows: TermRows, *, tokens_BxW: Array
    ) -> TermState:
        """Matches one more token of each hypothesis."""
        tokens_BxW = jnp.asarray(tokens_BxW)
        is_glued_BxWx1 = jnp.asarray(self.joins_V)[tokens_BxW][..., None]
        is_glued_BxWx1 |= state.word_goes_on_BxW[..., None]
        is_lost_BxWxK = is_glued_BxWx1 & jnp.asarray(rows.ends_word_BxK)[:, None]
        at_BxWxKx1x1 = state.matched_BxWxK[..., None, None]
        continues_BxWxKxL = jnp.take_along_axis(
            jnp.asarray(rows.is_suffix_BxKxMxL)[:, None], at_BxWxKx1x1, axis=3
        )[..., 0, :]
        terms_Bx1xKxL = jnp.asarray(rows.tokens_BxKxL)[:, None]
        tokens_BxWx1x1 = tokens_BxW[..., None, None]
        fits_BxWxKxL = continues_BxWxKxL & (terms_Bx1xKxL == tokens_BxWx1x1)
        # A term does not begin inside of a word.
        begins_BxWxK = fits_BxWxKxL[..., 0] & ~is_glued_BxWx1
        fits_BxWxKxL = fits_BxWxKxL.at[..., 0].set(begins_BxWxK)
        lengths_L = jnp.arange(1, fits_BxWxKxL.shape[-1] + 1, dtype=jnp.int32)
        is_new_BxWxK = _is_complete(state, rows) & ~is_lost_BxWxK
        matched_BxWxKxL = jnp.where(fits_BxWxKxL, lengths_L[None, None, None], 0)
        return TermState(
            has_term_BxWxK=state.has_term_BxWxK | is_new_BxWxK,
            matched_BxWxK=jnp.max(matched_BxWxKxL, axis=-1),
            word_goes_on_BxW=jnp.asarray(self.goes_on_V)[tokens_BxW],
        )

    def banks(self, state: TermState, rows: TermRows) -> jax.Array:
        """Returns the tokens of terms that hypotheses have: [B, W] int32.

        Of several terms that are begun, the one with the most tokens counts.
        """
        is_met_BxWxK, lengths_Bx1xK = _is_met(state, rows), _lengths(rows)[:, None]
        met_BxWxK = jnp.where(is_met_BxWxK, lengths_Bx1xK, 0)
        met_BxW = jnp.sum(met_BxWxK, axis=-1, dtype=jnp.int32)
        begun_BxWxK = jnp.where(is_met_BxWxK, 0, state.matched_BxWxK)
        return met_BxW + jnp.max(begun_BxWxK, axis=-1, initial=0)


def _lengths(rows: TermRows) -> jax.Array:
    """Returns the tokens of each term, [B, K] int32."""
    return jnp.sum(jnp.asarray(rows.tokens_BxKxL) != PAD, axis=-1, dtype=jnp.int32)


def _is_complete(state: TermState, rows: TermRows) -> jax.Array:
    """Returns which terms end with the last token of a hypothesis, [B, W, K]."""
    return jnp.asarray(state.matched_BxWxK) == _lengths(rows)[:, None]


def _is_met(state: TermState, rows: TermRows) -> jax.Array:
    return jnp.asarray(state.has_term_BxWxK) | _is_complete(state, rows)


def term_rows(
    terms: Sequence[Sequence[Sequence[int]]],
    *,
    ends_word: Sequence[Sequence[bool]] | None = None,
    count: int = 1,
    length: int = 1,
) -> TermRows:
    """Makes the arrays of terms.

    Args:
      terms: the tokens of each term of each sentence.
      ends_word: of each term, see `TermRows`; None for none.
      count: least K.
      length: least L; each shape is a program to compile.

    Example:
      >>> rows = term_rows([[[5, 6], [7]], []], count=2)
      >>> rows.tokens_BxKxL.tolist()
      [[[5, 6], [7, 0]], [[0, 0], [0, 0]]]
    """
    count = max([count, *map(len, terms)])
    length = max([length, *(len(term) for row in terms for term in row)])
    tokens_BxKxL = np.full((len(terms), count, length), PAD, np.int32)
    ends_word_BxK = np.zeros((len(terms), count), bool)
    for row, sentence in enumerate(terms):
        for number, term in enumerate(sentence):
            tokens_BxKxL[row, number, : len(term)] = term
            if ends_word is not None:
                ends_word_BxK[row, number] = ends_word[row][number]
    return TermRows(tokens_BxKxL, _suffixes(tokens_BxKxL), ends_word_BxK)


def _suffixes(tokens_BxKxL: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Returns `is_suffix_BxKxMxL` of `TermRows`: the automaton that finds a term."""
    *leading, length = tokens_BxKxL.shape
    found = np.zeros((*leading, length + 1, length), bool)
    for end in range(length + 1):
        for size in range(min(end, length - 1) + 1):
            first = tokens_BxKxL[..., :size]
            last = tokens_BxKxL[..., end - size : end]
            found[..., end, size] = (first == last).all(axis=-1)
    # Pad is not a token of a term: what would match it is not looked for.
    found &= (tokens_BxKxL != PAD)[..., None, :]
    return found
