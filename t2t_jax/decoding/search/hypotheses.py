"""Sets of hypotheses, and how to pick among them. Pure functions of arrays."""

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


def decode_while(
    state: State,
    *,
    until: Array | int,
    step: Callable[[State], State],
    is_done: Callable[[State], jax.Array],
) -> State:
    """Takes steps until a position is reached, or every sentence is done.

    Args:
      state: where decoding stands; a pytree with a scalar `position`.
      step: makes the state one position later.
      is_done: tells of each sentence, [B] bool, whether it can gain nothing more.

    Returns:
      The state reached.
    """

    def goes_on(state: State) -> jax.Array:
        return jnp.asarray(state.position < until) & ~jnp.all(is_done(state))

    reached: State = jax.lax.while_loop(goes_on, step, state)
    return reached


Tree = TypeVar("Tree")


class Hypotheses(NamedTuple):
    """Some outputs of each sentence, the best first.

    A place that no output has taken yet has the log-probability and score -inf.

    Attributes:
      tokens_BxWxT: [B, W, T] int32 tokens without bos, pad after the last one.
      log_probabilities_BxW: [B, W] float32, the sum over the tokens.
      scores_BxW: [B, W] float32, log-probability / length penalty.
    """

    tokens_BxWxT: jax.Array
    log_probabilities_BxW: jax.Array
    scores_BxW: jax.Array


def empty_hypotheses(rows: int, beams: int, *, max_length: int, pad: int) -> Hypotheses:
    """Makes empty places.

    Args:
      pad: what the tokens are filled with.

    Returns:
      B x W places, all of them at -inf.

    Example:
      >>> empty_hypotheses(1, 2, max_length=3, pad=0).scores_BxW.tolist()
      [[-inf, -inf]]
    """
    return Hypotheses(
        tokens_BxWxT=jnp.full((rows, beams, max_length), pad, jnp.int32),
        log_probabilities_BxW=jnp.full((rows, beams), -jnp.inf, jnp.float32),
        scores_BxW=jnp.full((rows, beams), -jnp.inf, jnp.float32),
    )


def gather_beams(tree: Tree, places_BxC: jax.Array) -> Tree:
    """Takes the places `places_BxC` of every leaf.

    Args:
      tree: a pytree whose leaves are [B, W, ...].
      places_BxC: [B, C] which of the W places, sentence by sentence.

    Returns:
      The same pytree with leaves [B, C, ...].

    Example:
      >>> gather_beams(jnp.array([[7, 8, 9]]), jnp.array([[2, 0]])).tolist()
      [[9, 7]]
    """

    def take(leaf: jax.Array) -> jax.Array:
        trailing = tuple(range(2, leaf.ndim))
        return jnp.take_along_axis(leaf, jnp.expand_dims(places_BxC, trailing), axis=1)

    taken: Tree = jax.tree.map(take, tree)
    return taken


def mask_hypotheses(keep_BxW: jax.Array, hypotheses: Hypotheses) -> Hypotheses:
    """Puts the hypotheses that are not to be kept at -inf, where none is chosen.

    Args:
      keep_BxW: [B, W] bool.
      hypotheses: B x W of them.

    Returns:
      As many places; the tokens are left as they were.

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
    """Puts the places of `second` behind those of `first`.

    Args:
      second: B x C hypotheses of the same sentences and the same T.

    Returns:
      B x (W + C) hypotheses.

    Example:
      >>> one = empty_hypotheses(1, 1, max_length=3, pad=0)
      >>> join(one, one).tokens_BxWxT.shape
      (1, 2, 3)
    """
    joined: Hypotheses = jax.tree.map(
        lambda left, right: jnp.concatenate([left, right], axis=1), first, second
    )
    return joined


def where_rows(old_B: jax.Array, old: Tree, *, new: Tree) -> Tree:
    """Takes whole sentences from `old` where `old_B` holds, else from `new`.

    Args:
      old_B: [B] bool.
      old: a pytree whose leaves start with axis B.
      new: a pytree of the same shapes.

    Returns:
      The mixture.

    Example:
      >>> old, new = jnp.array([[1], [2]]), jnp.array([[3], [4]])
      >>> where_rows(jnp.array([True, False]), old, new=new).tolist()
      [[1], [4]]
    """

    def choose(before: jax.Array, after: jax.Array) -> jax.Array:
        trailing = tuple(range(1, before.ndim))
        return jnp.where(jnp.expand_dims(old_B, trailing), before, after)

    mixture: Tree = jax.tree.map(choose, old, new)
    return mixture
