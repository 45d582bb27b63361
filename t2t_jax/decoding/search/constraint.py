"""Constraints on the outputs of a beam search: the protocol, and its candidates."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import jax
import jax.numpy as jnp

from t2t_jax.types import Array, PyTree


class Constraint(Protocol):
    """Restricts the outputs of `beam_search`, hypothesis by hypothesis.

    An implementation is a frozen pytree, as models are: a search can be jitted with it
    as an argument. Its arrays are shared by all sentences; what differs between
    sentences is `rows`, a pytree whose leaves begin with axis B, and what differs
    between hypotheses is the state, whose leaves begin with the axes B and W. Methods
    are pure and have static shapes. Those that a subclass leaves out restrict nothing.

    The search works with the model's own probabilities: whatever is forbidden, scores
    are normalized over all tokens.

    Example:
      Outputs without a token that follows itself, on any model:

      >>> import flax.struct
      >>> class NoRepetition(Constraint, flax.struct.PyTreeNode):
      ...     vocabulary: int = flax.struct.field(pytree_node=False)
      ...
      ...     def init(self, rows, *, limits_B, num_beams):
      ...         return jnp.zeros((len(limits_B), num_beams), jnp.int32)
      ...
      ...     def bias(self, state, rows, *, position):
      ...         repeated_BxWxV = jax.nn.one_hot(state, self.vocabulary, dtype=bool)
      ...         return jnp.where(repeated_BxWxV, -jnp.inf, 0.0)
      ...
      ...     def advance(self, state, rows, *, tokens_BxW):
      ...         return tokens_BxW
      >>> rule = NoRepetition(vocabulary=6)
      >>> state = rule.init(None, limits_B=jnp.array([9]), num_beams=2)
      >>> state = rule.advance(state, None, tokens_BxW=jnp.array([[4, 5]]))
      >>> rule.bias(state, None, position=1)[0, 1].tolist()
      [0.0, 0.0, 0.0, 0.0, 0.0, -inf]

      `t2t_jax.beam_search(model, source_BxS, constraint=rule)` applies it.
    """

    def init(self, rows: PyTree, *, limits_B: Array, num_beams: int) -> PyTree:
        """Returns the state of empty hypotheses; every leaf is [B, W, ...].

        Args:
          rows: of each sentence, as the search got it.
          limits_B: [B] int32 most tokens of an output, the eos included; 0 for a row
            without a sentence.
        """
        return ()

    def bias(self, state: PyTree, rows: PyTree, *, position: Array) -> Array | None:
        """Returns what is added to the logits of the next token, [B, W, V] float32.

        -inf forbids a token. Other values must be at most 0, by which a search knows
        when it is done, and are part of the score. None adds nothing.

        Args:
          position: of the next token, from 0; the hypotheses have so many.
        """
        return None

    def may_end(self, state: PyTree, rows: PyTree) -> Array | None:
        """Returns which hypotheses may be followed by eos, [B, W] bool; None for all.

        Costs less than a `bias` for eos only.
        """
        return None

    def wanted(self, state: PyTree, rows: PyTree) -> Array | None:
        """Returns tokens to consider beside the most probable ones, [B, W, C] int32.

        pad stands for none. None considers the most probable ones only.
        """
        return None

    def advance(self, state: PyTree, rows: PyTree, *, tokens_BxW: Array) -> PyTree:
        """Returns the state after one more token of each hypothesis.

        Args:
          state: of any number of hypotheses in the place of W: those of the parents.
          tokens_BxW: [B, W] int32, a token for each.
        """
        return state

    def banks(self, state: PyTree, rows: PyTree) -> Array | None:
        """Returns the bank of each hypothesis, [B, W] int32; None for a single one.

        The beam is divided among the banks: the best of each bank are taken in turn,
        beginning with the highest bank. Of outputs without an eos those of the highest
        bank come first.

        Args:
          state: of any number of hypotheses in the place of W.
        """
        return None


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class _Unconstrained(Constraint):
    """Restricts nothing: the search is the program that it is without constraints."""


UNCONSTRAINED = _Unconstrained()
"""The constraint of a search without one."""


def add_wanted(
    best_BxWxC: jax.Array,
    tokens_BxWxC: jax.Array,
    logits_BxWxV: Array,
    wanted_BxWxN: Array,
    *,
    pad: int,
) -> tuple[jax.Array, jax.Array]:
    """Adds wanted tokens to the best ones, each token at most once.

    Returns:
      (logits, tokens) [B, W, C + N]; what is already there is pad, with a logit of
      -inf.

    Example:
      >>> logits, tokens = add_wanted(
      ...     jnp.array([[[3.0]]]),
      ...     jnp.array([[[5]]]),
      ...     jnp.array([[[0.0, 0.0, 0.0, 0.0, 2.0, 3.0]]]),
      ...     jnp.array([[[4, 5, 4]]]),
      ...     pad=0,
      ... )
      >>> tokens.tolist(), logits.tolist()
      ([[[5, 4, 0, 0]]], [[[3.0, 2.0, -inf, -inf]]])
    """
    wanted_BxWxN = jnp.asarray(wanted_BxWxN, jnp.int32)
    both = jnp.concatenate([tokens_BxWxC, wanted_BxWxN], axis=2)
    size, first = both.shape[2], tokens_BxWxC.shape[2]
    is_before_1x1xNxC = jnp.tril(jnp.ones((1, 1, size, size), bool), k=-1)[:, :, first:]
    is_same_BxWxNxC = wanted_BxWxN[..., None] == both[:, :, None, :]
    is_there_BxWxN = jnp.any(is_same_BxWxNxC & is_before_1x1xNxC, axis=-1)
    found_BxWxN = jnp.take_along_axis(logits_BxWxV, wanted_BxWxN, axis=2)
    is_there_BxWxN |= wanted_BxWxN == pad
    added_BxWxN = jnp.where(is_there_BxWxN, -jnp.inf, found_BxWxN)
    new_BxWxN = jnp.where(is_there_BxWxN, pad, wanted_BxWxN)
    return (
        jnp.concatenate([best_BxWxC, added_BxWxN], axis=2),
        jnp.concatenate([tokens_BxWxC, new_BxWxN], axis=2),
    )
