"""Hypotheses of a batch, and array operations on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from t2t_jax.types import Array


class _State(Protocol):
    @property
    def position(self) -> Any: ...


State = TypeVar("State", bound=_State)
Tree = TypeVar("Tree")


def decode_while(
    state: State,
    *,
    until: Array | int,
    step: Callable[[State], State],
    is_done: Callable[[State], jax.Array],
) -> State:
    """Runs `step` until a position is reached, or until every sentence is done.

    Args:
      state: a pytree with a scalar `position`.
      step: returns the state one position later.
      is_done: returns [B] bool, which sentences are complete.
    """

    def continues(state: State) -> jax.Array:
        return jnp.asarray(state.position < until) & ~jnp.all(is_done(state))

    reached: State = jax.lax.while_loop(continues, step, state)
    return reached


class Hypotheses(NamedTuple):
    """Outputs of each sentence, best first.

    Empty entries have the log-probability and score -inf.

    Attributes:
      tokens_BxWxT: [B, W, T] int32 tokens without bos, pad after the last one.
      log_probabilities_BxW: [B, W] float32, the sum over the tokens.
      scores_BxW: [B, W] float32, log-probability / length penalty.
    """

    tokens_BxWxT: jax.Array
    log_probabilities_BxW: jax.Array
    scores_BxW: jax.Array


def empty_hypotheses(rows: int, beams: int, *, max_length: int, pad: int) -> Hypotheses:
    """Returns B x W empty hypotheses: only `pad`, scores -inf.

    Example:
      >>> empty_hypotheses(1, 2, max_length=3, pad=0).scores_BxW.tolist()
      [[-inf, -inf]]
    """
    return Hypotheses(
        tokens_BxWxT=jnp.full((rows, beams, max_length), pad, jnp.int32),
        log_probabilities_BxW=jnp.full((rows, beams), -jnp.inf, jnp.float32),
        scores_BxW=jnp.full((rows, beams), -jnp.inf, jnp.float32),
    )


def gather_beams(tree: Tree, indices_BxC: jax.Array) -> Tree:
    """Gathers beams from every leaf, sentence by sentence.

    Args:
      tree: leaves [B, W, ...].
      indices_BxC: [B, C] which of the W beams.

    Returns:
      The same pytree with leaves [B, C, ...].

    Example:
      >>> gather_beams(jnp.array([[7, 8, 9]]), jnp.array([[2, 0]])).tolist()
      [[9, 7]]
    """

    def take(leaf: jax.Array) -> jax.Array:
        trailing = tuple(range(2, leaf.ndim))
        return jnp.take_along_axis(leaf, jnp.expand_dims(indices_BxC, trailing), axis=1)

    gathered: Tree = jax.tree.map(take, tree)
    return gathered


def mask_hypotheses(keep_BxW: jax.Array, hypotheses: Hypotheses) -> Hypotheses:
    """Sets the scores of hypotheses outside `keep_BxW` ([B, W] bool) to -inf.

    Example:
      >>> two = empty_hypotheses(1, 2, max_length=3, pad=0)
      >>> two = two._replace(scores_BxW=jnp.array([[-1.0, -2.0]]))
      >>> mask_hypotheses(jnp.array([[False, True]]), two).scores_BxW.tolist()
      [[-inf, -2.0]]
    """
    return hypotheses._replace(
        log_probabilities_BxW=jnp.where(
            keep_BxW, hypotheses.log_probabilities_BxW, -jnp.inf
        ),
        scores_BxW=jnp.where(keep_BxW, hypotheses.scores_BxW, -jnp.inf),
    )


def concat_hypotheses(first: Hypotheses, second: Hypotheses) -> Hypotheses:
    """Concatenates W and C hypotheses of the same sentences and T into W + C.

    Example:
      >>> one = empty_hypotheses(1, 1, max_length=3, pad=0)
      >>> concat_hypotheses(one, one).tokens_BxWxT.shape
      (1, 2, 3)
    """
    joined: Hypotheses = jax.tree.map(
        lambda left, right: jnp.concatenate([left, right], axis=1), first, second
    )
    return joined


def where_rows(old_B: jax.Array, old: Tree, *, new: Tree) -> Tree:
    """Selects rows of `old` where `old_B` ([B] bool) holds, else of `new`.

    Args:
      old: leaves start with axis B.
      new: the same shapes.

    Example:
      >>> old, new = jnp.array([[1], [2]]), jnp.array([[3], [4]])
      >>> where_rows(jnp.array([True, False]), old, new=new).tolist()
      [[1], [4]]
    """

    def select(before: jax.Array, after: jax.Array) -> jax.Array:
        trailing = tuple(range(1, before.ndim))
        return jnp.where(jnp.expand_dims(old_B, trailing), before, after)

    selected: Tree = jax.tree.map(select, old, new)
    return selected
