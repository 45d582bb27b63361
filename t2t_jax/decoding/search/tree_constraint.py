"""One balanced tree over exactly the words of the source: a constraint."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.search.constraint import Constraint
from t2t_jax.errors import DataError
from t2t_jax.types import BOS, EOS, PAD, UNK, Array

OTHER, OPEN, CLOSE, WORD = range(4)
"""Kinds of symbols; `OTHER` is not part of a tree."""

MAX_DEPTH = 100
"""Most constituents of a tree that are open at once."""

_SPECIAL = (PAD, BOS, EOS, UNK)


class TreeState(NamedTuple):
    """The constituents that a hypothesis has open.

    Attributes:
      labels_BxWxD: [B, W, D] int32, of the open constituents, the outermost first; what
        follows is not read.
      depth_BxW: [B, W] int32, how many are open.
      is_empty_BxW: [B, W] bool, whether the innermost one has no word yet.
      words_left_BxW: [B, W] int32, words of the source that are not in the tree yet.
      tokens_left_BxW: [B, W] int32, tokens until the limit of the output.
    """

    labels_BxWxD: Array
    depth_BxW: Array
    is_empty_BxW: Array
    words_left_BxW: Array
    tokens_left_BxW: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TreeConstraint(Constraint):
    """Every output is one tree over all words of its sentence, then eos.

    A constituent has at least one word, and the label that closes it is the one that
    opened it. As many tokens are left as close the tree and hold the words that are
    left, so an output never reaches its limit before its end, if the limit is at
    least the number of words + 3. The rows are [B] int32, the words of each sentence.

    Attributes:
      kind_V: [V] int32, `OPEN`, `CLOSE`, `WORD` or `OTHER`.
      label_V: [V] int32, the label of what opens or closes a constituent, from 0.
      max_depth: most constituents that are open at once.

    Example:
      >>> rule = tree_constraint([*"0123", "(S", ")S", "XX"])
      >>> words_B = jnp.array([1])
      >>> state = rule.init(words_B, limits_B=jnp.array([4]), num_beams=1)
      >>> for token in (4, 6, 5, 2):  # (S XX )S eos: the limit allows no more
      ...     allowed = rule.bias(state, words_B, position=0)[0, 0] == 0
      ...     print(jnp.flatnonzero(allowed).tolist())
      ...     state = rule.advance(state, words_B, tokens_BxW=jnp.array([[token]]))
      [4]
      [6]
      [5]
      [2]
    """

    kind_V: Array
    label_V: Array
    max_depth: int = dataclasses.field(default=MAX_DEPTH, metadata={"static": True})

    def init(self, rows: Array, *, limits_B: Array, num_beams: int) -> TreeState:
        """Returns the state of empty hypotheses."""
        shape = (jnp.shape(rows)[0], num_beams)

        def each(numbers_B: Array) -> jax.Array:
            return jnp.broadcast_to(jnp.asarray(numbers_B, jnp.int32)[:, None], shape)

        return TreeState(
            labels_BxWxD=jnp.zeros((*shape, self.max_depth), jnp.int32),
            depth_BxW=jnp.zeros(shape, jnp.int32),
            is_empty_BxW=jnp.ones(shape, bool),
            words_left_BxW=each(rows),
            tokens_left_BxW=each(limits_B),
        )

    def bias(self, state: TreeState, rows: Array, *, position: Array) -> jax.Array:
        """Forbids what does not lead to a tree: [B, W, V], 0 or -inf."""
        depth_BxW, has_words_BxW = state.depth_BxW, state.words_left_BxW > 0
        # After an opening symbol: the words, a closing symbol for each, and eos.
        needed_BxW = state.words_left_BxW + depth_BxW + 2
        may_open_BxW = has_words_BxW & (depth_BxW < self.max_depth)
        may_open_BxW &= state.tokens_left_BxW > needed_BxW
        # The outermost constituent holds all words.
        may_close_BxW = ~state.is_empty_BxW & ((depth_BxW > 1) | ~has_words_BxW)
        may_close_BxW &= depth_BxW > 0
        kind_1x1xV = jnp.asarray(self.kind_V)[None, None]
        top_BxWx1 = _innermost(state)[..., None]
        is_top_BxWxV = jnp.asarray(self.label_V)[None, None] == top_BxWx1
        allowed_BxWxV = (kind_1x1xV == OPEN) & may_open_BxW[..., None]
        allowed_BxWxV |= (kind_1x1xV == CLOSE) & is_top_BxWxV & may_close_BxW[..., None]
        may_hold_BxW = has_words_BxW & (depth_BxW > 0)
        allowed_BxWxV |= (kind_1x1xV == WORD) & may_hold_BxW[..., None]
        is_eos_1x1xV = jnp.arange(kind_1x1xV.shape[-1])[None, None] == EOS
        is_tree_BxW = (depth_BxW == 0) & ~has_words_BxW
        allowed_BxWxV |= is_eos_1x1xV & is_tree_BxW[..., None]
        return jnp.where(allowed_BxWxV, 0.0, -jnp.inf)

    def advance(self, state: TreeState, rows: Array, *, tokens_BxW: Array) -> TreeState:
        """Adds one more symbol to each hypothesis."""
        tokens_BxW = jnp.asarray(tokens_BxW)
        kind_BxW = jnp.asarray(self.kind_V)[tokens_BxW]
        opens_BxW, closes_BxW = kind_BxW == OPEN, kind_BxW == CLOSE
        is_word_BxW = kind_BxW == WORD
        depth_D = jnp.arange(self.max_depth, dtype=jnp.int32)
        is_next_BxWxD = depth_D[None, None] == state.depth_BxW[..., None]
        is_label_BxWxD = is_next_BxWxD & opens_BxW[..., None]
        label_BxWx1 = jnp.asarray(self.label_V)[tokens_BxW][..., None]
        deeper_BxW = state.depth_BxW + opens_BxW.astype(jnp.int32)
        return TreeState(
            labels_BxWxD=jnp.where(is_label_BxWxD, label_BxWx1, state.labels_BxWxD),
            depth_BxW=deeper_BxW - closes_BxW.astype(jnp.int32),
            is_empty_BxW=opens_BxW | (state.is_empty_BxW & ~is_word_BxW & ~closes_BxW),
            words_left_BxW=state.words_left_BxW - is_word_BxW.astype(jnp.int32),
            tokens_left_BxW=state.tokens_left_BxW - 1,
        )


def _innermost(state: TreeState) -> jax.Array:
    """Returns the label of the innermost constituent, [B, W]."""
    top_BxWx1 = jnp.maximum(state.depth_BxW - 1, 0)[..., None]
    return jnp.take_along_axis(state.labels_BxWxD, top_BxWx1, axis=2)[..., 0]


def tree_constraint(
    pieces: Sequence[str], *, max_depth: int = MAX_DEPTH
) -> TreeConstraint:
    """Makes the constraint of a vocabulary of tree symbols.

    Args:
      pieces: of the vocabulary, by id, as `data.trees.linearization` writes them:
        `(NP` opens a constituent, `)NP` closes one, and all else is a word; but for
        the special pieces, those in `<>`, and brackets without their counterpart.

    Raises:
      DataError: the pieces are parts of symbols, or there is no symbol of a word or
        no label that opens and closes.

    Example:
      >>> pieces = [*"0123", "(S", "(NP", ")S", "XX", ")NP", ")VP", "<unused_10>"]
      >>> rule = tree_constraint(pieces)
      >>> rule.kind_V.tolist(), rule.label_V.tolist()
      ([0, 0, 0, 0, 1, 1, 2, 3, 2, 0, 0], [0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0])
    """
    symbols = {n: piece for n, piece in enumerate(pieces) if n not in _SPECIAL}
    parts = [
        piece
        for piece in symbols.values()
        if piece.startswith("\u2581") or piece in ("(", ")") or piece.endswith("@@")
    ]
    opened = {piece[1:] for piece in symbols.values() if piece.startswith("(")}
    closed = {piece[1:] for piece in symbols.values() if piece.startswith(")")}
    labels = {label: number for number, label in enumerate(sorted(opened & closed))}
    kind_V = np.zeros(len(pieces), np.int32)
    label_V = np.zeros(len(pieces), np.int32)
    for number, piece in symbols.items():
        if piece[:1] in ("(", ")"):
            if (label := labels.get(piece[1:])) is not None:
                kind_V[number] = OPEN if piece[0] == "(" else CLOSE
                label_V[number] = label
        elif not (piece.startswith("<") and piece.endswith(">")):
            kind_V[number] = WORD
    shown = f"parts of symbols, such as {', '.join(map(repr, parts[:3]))}; "
    if parts or not labels or not (kind_V == WORD).any():
        raise DataError(
            "Each piece of the target vocabulary must be one symbol of a tree, such as "
            f"(NP, )NP and XX, and it has {shown if parts else ''}{len(labels)} labels "
            f"that open and close constituents; and {(kind_V == WORD).sum()} symbols "
            "of words. Use a model that was trained on trees with config.vocabulary."
            "unit=words, or leave decoding.constraint out."
        )
    return TreeConstraint(kind_V=kind_V, label_V=label_V, max_depth=max_depth)
