"""A beam search and its state, and operations on all beams of a batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.constraint import UNCONSTRAINED, Constraint
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.types import Array, PyTree, StepModel

Tree = TypeVar("Tree")
State = TypeVar("State")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """What is searched, and how: a pytree whose parameters are static."""

    model: StepModel
    params: BeamParams = dataclasses.field(metadata={"static": True})
    constraint: Constraint = UNCONSTRAINED


class Hypotheses(NamedTuple):
    """Outputs of each sentence, best first.

    Empty entries have the log-probability and score -inf.

    Attributes:
      tokens_BxWxT: [B, W, T] int32 tokens without bos, pad after the last one.
    """

    tokens_BxWxT: jax.Array
    log_probabilities_BxW: jax.Array
    scores_BxW: jax.Array


class BeamState(NamedTuple):
    """The state of a search between two positions.

    Attributes:
      limits_B: [B] int32, maximum tokens of an output, 0 for an empty row.
      last_tokens_BxW: [B, W] int32, the next input of each live beam.
      prefixes_BxP: [B, P] int32 forced prefixes, then pad; None for none.
      constraint_rows: of each sentence, leaves [B, ...].
      constraint_state: of the live hypotheses, leaves [B, W, ...].
    """

    position: jax.Array
    limits_B: jax.Array
    last_tokens_BxW: jax.Array
    living: Hypotheses
    finished: Hypotheses
    cache: PyTree
    prefixes_BxP: jax.Array | None = None
    constraint_rows: PyTree = ()
    constraint_state: PyTree = ()


def best_hypotheses(hypotheses: Hypotheses, beams: int) -> tuple[Hypotheses, jax.Array]:
    """Keeps the best `beams` by score: (hypotheses, [B, W] their previous indices)."""
    _, indices_BxW = jax.lax.top_k(hypotheses.scores_BxW, beams)
    return gather_beams(hypotheses, indices_BxW), indices_BxW


def empty_hypotheses(rows: int, beams: int, *, max_length: int, pad: int) -> Hypotheses:
    """Returns B x W empty hypotheses: only `pad`, scores -inf."""
    return Hypotheses(
        tokens_BxWxT=jnp.full((rows, beams, max_length), pad, jnp.int32),
        log_probabilities_BxW=jnp.full((rows, beams), -jnp.inf, jnp.float32),
        scores_BxW=jnp.full((rows, beams), -jnp.inf, jnp.float32),
    )


def gather_beams(tree: Tree, indices_BxC: jax.Array) -> Tree:
    """Gathers the beams `indices_BxC` of every sentence: [B, W, ...] -> [B, C, ...]."""

    def take(leaf: jax.Array) -> jax.Array:
        trailing = tuple(range(2, leaf.ndim))
        return jnp.take_along_axis(leaf, jnp.expand_dims(indices_BxC, trailing), axis=1)

    gathered: Tree = jax.tree.map(take, tree)
    return gathered


def mask_hypotheses(keep_BxW: jax.Array, hypotheses: Hypotheses) -> Hypotheses:
    """Sets the scores of hypotheses outside `keep_BxW` ([B, W] bool) to -inf."""
    return hypotheses._replace(
        log_probabilities_BxW=jnp.where(
            keep_BxW, hypotheses.log_probabilities_BxW, -jnp.inf
        ),
        scores_BxW=jnp.where(keep_BxW, hypotheses.scores_BxW, -jnp.inf),
    )


def concat_hypotheses(first: Hypotheses, second: Hypotheses) -> Hypotheses:
    """Concatenates W and C hypotheses of the same sentences and T into W + C."""
    joined: Hypotheses = jax.tree.map(
        lambda left, right: jnp.concatenate([left, right], axis=1), first, second
    )
    return joined


def run_until(
    until: Array | int,
    state: State,
    *,
    step: Callable[[State], State],
    is_done: Callable[[State], jax.Array],
) -> State:
    """Takes steps until position `until`, or until every sentence is done."""

    def continues(state: Any) -> jax.Array:
        return jnp.asarray(state.position < until) & ~jnp.all(is_done(state))

    return jax.lax.while_loop(continues, step, state)


def where_rows(old_B: jax.Array, old: Tree, *, new: Tree) -> Tree:
    """Selects rows of `old` where `old_B` ([B] bool) holds, else of `new`."""

    def select(before: jax.Array, after: jax.Array) -> jax.Array:
        trailing = tuple(range(1, before.ndim))
        return jnp.where(jnp.expand_dims(old_B, trailing), before, after)

    selected: Tree = jax.tree.map(select, old, new)
    return selected
