"""One position of the beam search: its state, its step, and when it may stop.

Everything here is a pure function of arrays. `beam_search` runs the steps in one
loop, `Translator` in chunks between which the model's cache grows.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.constraints import forced_tokens, only_forced, with_room_for
from t2t_jax.decoding.hypotheses import (
    Hypotheses,
    choose_rows,
    join,
    keep_only,
    no_hypotheses,
    take_places,
)
from t2t_jax.decoding.lengths import length_penalty
from t2t_jax.decoding.rules import BeamRules
from t2t_jax.decoding.stepping import take_steps
from t2t_jax.decoding.top_k import top_k
from t2t_jax.types import Array, PyTree, StepModel


class BeamState(NamedTuple):
    """Where a search stands.

    Attributes:
      position: int32 scalar, the tokens that every living hypothesis holds.
      limits_B: [B] int32, the tokens that an output may hold, 0 for an empty row.
      last_tokens_BxW: [B, W] int32, what each living beam reads next.
      living: the W hypotheses that go on.
      finished: the best W hypotheses that have ended in eos.
      cache: the model's own state of the living beams.
      prefixes_BxP: [B, P] int32, what each output must begin with, then pad; None
        where nothing is forced.
    """

    position: jax.Array
    limits_B: jax.Array
    last_tokens_BxW: jax.Array
    living: Hypotheses
    finished: Hypotheses
    cache: PyTree
    prefixes_BxP: jax.Array | None = None


def init_state(
    model: StepModel,
    memory: PyTree,
    *,
    limits_B: Array,
    max_length: int,
    cache_length: int,
    rules: BeamRules,
    prefixes_BxP: Array | None = None,
) -> BeamState:
    """Makes the state before the first token.

    All W beams would say the same at first, so only beam 0 is alive.

    Args:
      model: what is searched.
      memory: what `model.encode` returned for the B sentences.
      limits_B: [B] int32, the tokens that each output may hold.
      max_length: T, room for tokens; no limit may be above it.
      cache_length: positions that the model's cache has room for at first.
      rules: what the search goes by.
      prefixes_BxP: what each output must begin with, then pad; None: anything. A limit
        that would end an output within its prefix is raised.

    Returns:
      The state at position 0.
    """
    limits_B = with_room_for(
        limits_B, prefixes_BxP, max_length=max_length, pad=rules.ids.pad
    )
    rows, beams, ids = limits_B.shape[0], rules.beam_size, rules.ids
    nothing = no_hypotheses(rows, beams, max_length=max_length, pad=ids.pad)
    first_BxW = nothing.scores_BxW.at[:, 0].set(0.0)
    cache = model.init_cache(memory, beams, cache_length)
    # A model may put reordering off, and its cache remember what is to be done: then it
    # has the form here that it will have after every step.
    own_BxW = jnp.broadcast_to(jnp.arange(beams)[None], (rows, beams))
    return BeamState(
        position=jnp.zeros((), jnp.int32),
        limits_B=limits_B,
        last_tokens_BxW=jnp.full((rows, beams), ids.bos, jnp.int32),
        living=Hypotheses(nothing.tokens_BxWxT, first_BxW, first_BxW),
        finished=nothing,
        cache=model.reorder(cache, own_BxW),
        prefixes_BxP=prefixes_BxP
        if prefixes_BxP is None
        else jnp.asarray(prefixes_BxP),
    )


def is_done(state: BeamState, *, rules: BeamRules) -> jax.Array:
    """Tells which sentences can gain nothing more.

    A sentence is done at its limit, or when its `n_best`-th finished score is at least
    what its best living hypothesis could still reach: a log-probability only falls, and
    the penalty is largest at the limit.

    Args:
      state: where the search stands.
      rules: what the search goes by.

    Returns:
      [B] bool.
    """
    best_living_B = state.living.log_probabilities_BxW[:, 0]
    reachable_B = best_living_B / length_penalty(state.limits_B, rules.length_penalty)
    certain_B = state.finished.scores_BxW[:, rules.n_best - 1] >= reachable_B
    return (state.position >= state.limits_B) | certain_B


def beam_step(
    model: StepModel, state: BeamState, *, memory: PyTree, rules: BeamRules
) -> BeamState:
    """Gives every living hypothesis its next token.

    The best 2W of the W x V continuations are looked at, since at most W of them end in
    eos. Those that do join the finished ones, of which the best W are kept; of the
    others the best W live on. A sentence that was done before does not change.

    Paper: section 6.1. It says "beam search"; these details are those of the authors'
    own program.

    Args:
      model: what is searched.
      state: where the search stands.
      memory: what `model.encode` returned.
      rules: what the search goes by.

    Returns:
      The state one position later.
    """
    logits_BxWxV, cache = model.step(
        state.last_tokens_BxW, memory, state.cache, state.position
    )
    parents, tokens, log_probabilities = _best_continuations(
        logits_BxWxV, state, rules=rules
    )
    said = take_places(state.living.tokens_BxWxT, parents)
    continued = Hypotheses(
        said.at[:, :, state.position].set(tokens),
        log_probabilities,
        log_probabilities / length_penalty(state.position + 1, rules.length_penalty),
    )
    ends = tokens == rules.ids.eos
    going_on, places = _best(keep_only(~ends, continued), rules.beam_size)
    # A single beam is greedy: an eos that is only second best ends nothing.
    may_end = ends if rules.beam_size > 1 else ends.at[:, 1:].set(False)
    ended = keep_only(may_end, continued)
    finished, _ = _best(join(state.finished, ended), rules.beam_size)
    parents, last_tokens = take_places((parents, tokens), places)
    done_B = is_done(state, rules=rules)
    return BeamState(
        position=state.position + 1,
        limits_B=state.limits_B,
        last_tokens_BxW=last_tokens,
        living=choose_rows(done_B, state.living, new=going_on),
        finished=choose_rows(done_B, state.finished, new=finished),
        # What a done sentence has in the cache is never read: no need to freeze it.
        cache=model.reorder(cache, parents),
        prefixes_BxP=state.prefixes_BxP,
    )


def advance(
    model: StepModel,
    state: BeamState,
    *,
    memory: PyTree,
    until: Array | int,
    rules: BeamRules,
) -> BeamState:
    """Takes steps until position `until`, or until every sentence is done.

    Args:
      model: what is searched.
      state: where the search stands; its cache has room for `until` positions.
      memory: what `model.encode` returned.
      until: position to stop at.
      rules: what the search goes by.

    Returns:
      The state reached.
    """
    return take_steps(
        state,
        until=until,
        step=lambda state: beam_step(model, state, memory=memory, rules=rules),
        is_done=lambda state: is_done(state, rules=rules),
    )


def _best_continuations(
    logits_BxWxV: Array, state: BeamState, *, rules: BeamRules
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Finds the best 2W: ([B, 2W] parent beams, tokens, log-probabilities)."""
    rows, beams, vocabulary = logits_BxWxV.shape
    ids, may_end_from = rules.ids, rules.min_tokens
    # A sum over V terms loses the small ones in bfloat16. (To take the highest from the
    # search below, which knows it, costs a third of the speed: XLA fuses less.)
    normaliser_BxWx1 = jax.nn.logsumexp(
        jnp.asarray(logits_BxWxV, jnp.float32), axis=-1, keepdims=True
    )
    if state.prefixes_BxP is not None:
        forced_B = forced_tokens(state.prefixes_BxP, state.position, pad=ids.pad)
        logits_BxWxV = only_forced(logits_BxWxV, forced_B, pad=ids.pad)
    # Pad, bos and an early eos may be among the best: look at as many more as are void.
    width = min(2 * beams + 2 + bool(may_end_from), vocabulary)
    best_BxWxC, tokens_BxWxC = top_k(logits_BxWxV, width)
    so_far_BxWx1 = state.living.log_probabilities_BxW[..., None]
    totals_BxWxC = so_far_BxWx1 + (best_BxWxC.astype(jnp.float32) - normaliser_BxWx1)
    # What follows an empty place is void, whatever the model makes of its tokens.
    void_BxWxC = (tokens_BxWxC == ids.pad) | (tokens_BxWxC == ids.bos)
    void_BxWxC |= jnp.isneginf(so_far_BxWx1)
    if may_end_from:
        void_BxWxC |= (tokens_BxWxC == ids.eos) & (state.position < may_end_from)
    totals_BxWxC = jnp.where(void_BxWxC, -jnp.inf, totals_BxWxC)
    flat_shape = (rows, beams * width)
    totals, places = jax.lax.top_k(totals_BxWxC.reshape(flat_shape), 2 * beams)
    tokens = jnp.take_along_axis(tokens_BxWxC.reshape(flat_shape), places, axis=1)
    return places // width, tokens, totals


def _best(hypotheses: Hypotheses, beams: int) -> tuple[Hypotheses, jax.Array]:
    """Sorts by score and keeps the first: (hypotheses, their [B, W] places before)."""
    _, places_BxW = jax.lax.top_k(hypotheses.scores_BxW, beams)
    return take_places(hypotheses, places_BxW), places_BxW
