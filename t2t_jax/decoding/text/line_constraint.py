"""The constraint of a job: of its lines' terms, or of `decoding.constraint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.constraint import UNCONSTRAINED, Constraint
from t2t_jax.decoding.search.tree_constraint import TreeConstraint, tree_constraint
from t2t_jax.decoding.text.segments import Segment
from t2t_jax.decoding.text.terms import (
    TermEncoder,
    TermShape,
    make_term_rows,
    term_shape,
)
from t2t_jax.errors import DataError, UserError
from t2t_jax.types import PyTree

if TYPE_CHECKING:
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary

_TREE_TOKENS = 3  # that opens, that closes, and eos


class LineConstraint(NamedTuple):
    """A constraint, and what it has to know of each line.

    Attributes:
      terms: the axes of the arrays of terms, for a constraint of terms.
    """

    constraint: Constraint = UNCONSTRAINED
    terms: TermShape | None = None

    def rows(self, segments: Sequence[Segment], *, rows: int) -> PyTree:
        """Makes the constraint's arrays of a batch of so many rows; None for none."""
        if self.terms is not None:
            terms = [segment.terms for segment in segments]
            return make_term_rows(terms, rows=rows, shape=self.terms)
        if isinstance(self.constraint, TreeConstraint):
            words_B = np.zeros(rows, np.int32)
            words_B[: len(segments)] = [segment.num_words for segment in segments]
            return words_B
        return None


def tree_of(vocabulary: Vocabulary) -> LineConstraint:
    """Returns the constraint of trees with the symbols of a target vocabulary.

    Raises:
      DataError: its pieces are not symbols of trees.
    """
    return LineConstraint(tree_constraint(vocabulary.pieces(range(vocabulary.size))))


def terms_of(segments: Sequence[Segment], encoder: TermEncoder) -> LineConstraint:
    """Returns the constraint of the terms of lines; none if no line has any."""
    shape = term_shape([segment.terms for segment in segments])
    if shape is None:
        return LineConstraint()
    return LineConstraint(encoder.constraint, shape)


def check_terms(config: DecodingConfig) -> None:
    """Checks that terms can be required with a configuration.

    Raises:
      UserError: it samples, or has another constraint.
    """
    if config.sample:
        raise UserError(
            "Terms restrict a beam search, and sampling draws every token. Leave the "
            "terms out, or set decoding.sample=false."
        )
    if config.constraint != "none":
        raise UserError(
            f"Terms and decoding.constraint={config.constraint} are both constraints, "
            "and a search has one. Leave the terms out, or set "
            "decoding.constraint=none."
        )


def check_trees(segments: Sequence[Segment], config: DecodingConfig) -> None:
    """Checks that every line is in one part, and that a tree fits its limit.

    Raises:
      DataError: a line is too long, or has a prefix; the message lists them.
    """
    problems = LineProblems()
    for segment in segments:
        if segment.part or segment.cut:
            problems.add(
                f"Line {segment.line + 1}: it has more than "
                f"{config.max_source_length - 1} subwords and would be split, and the "
                "trees of its parts are not one tree. Raise "
                "config.decoding.max_source_length."
            )
        elif segment.num_words + _TREE_TOKENS > segment.longest_output(config):
            problems.add(
                f"Line {segment.line + 1}: a tree over its {segment.num_words} words "
                f"needs {segment.num_words + _TREE_TOKENS} tokens and may have "
                f"{segment.longest_output(config)}. Raise "
                "config.decoding.max_extra_tokens."
            )
        if segment.prefix:
            problems.add(
                f"Line {segment.line + 1}: decoding.constraint=tree does not support "
                "prefixes. Leave them out."
            )
    problems.raise_if_any(DataError)
