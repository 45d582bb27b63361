"""Beam search over any model that can say what comes next. Section 6.1 of the paper."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.hypotheses import (
    Hypotheses,
    concat_hypotheses,
    decode_while,
    empty_hypotheses,
    gather_beams,
    mask_hypotheses,
    where_rows,
)
from t2t_jax.decoding.search.length_penalty import (
    DEFAULT_IDS,
    SpecialIds,
    length_penalty,
    per_sentence_limits,
)
from t2t_jax.decoding.search.prefix_constraints import (
    forced_tokens,
    mask_to_forced_token,
    raise_limits_for_prefix,
    source_array,
    validated_max_length,
)
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.decoding.search.top_k import top_k
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
    rules: BeamParams,
    prefixes_BxP: Array | None = None,
) -> BeamState:
    """Makes the state before the first token.

    All W beams would say the same at first, so only beam 0 is alive.

    Args:
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
    limits_B = raise_limits_for_prefix(
        limits_B, prefixes_BxP, max_length=max_length, pad=rules.ids.pad
    )
    rows, beams, ids = limits_B.shape[0], rules.beam_size, rules.ids
    nothing = empty_hypotheses(rows, beams, max_length=max_length, pad=ids.pad)
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


def is_done(state: BeamState, *, rules: BeamParams) -> jax.Array:
    """Tells which sentences can gain nothing more.

    A sentence is done at its limit, or when its `n_best`-th finished score is at least
    what its best living hypothesis could still reach: a log-probability only falls, and
    the penalty is largest at the limit.

    Args:
      rules: what the search goes by.

    Returns:
      [B] bool.
    """
    best_living_B = state.living.log_probabilities_BxW[:, 0]
    reachable_B = best_living_B / length_penalty(state.limits_B, rules.length_penalty)
    certain_B = state.finished.scores_BxW[:, rules.n_best - 1] >= reachable_B
    return (state.position >= state.limits_B) | certain_B


def beam_step(
    model: StepModel, state: BeamState, *, memory: PyTree, rules: BeamParams
) -> BeamState:
    """Gives every living hypothesis its next token.

    The best 2W of the W x V continuations are looked at, since at most W of them end in
    eos. Those that do join the finished ones, of which the best W are kept; of the
    others the best W live on. A sentence that was done before does not change.

    Paper: section 6.1. It says "beam search"; these details are those of the authors'
    own program.

    Args:
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
    said = gather_beams(state.living.tokens_BxWxT, parents)
    continued = Hypotheses(
        said.at[:, :, state.position].set(tokens),
        log_probabilities,
        log_probabilities / length_penalty(state.position + 1, rules.length_penalty),
    )
    ends = tokens == rules.ids.eos
    going_on, places = _best(mask_hypotheses(~ends, continued), rules.beam_size)
    # A single beam is greedy: an eos that is only second best ends nothing.
    may_end = ends if rules.beam_size > 1 else ends.at[:, 1:].set(False)
    ended = mask_hypotheses(may_end, continued)
    finished, _ = _best(concat_hypotheses(state.finished, ended), rules.beam_size)
    parents, last_tokens = gather_beams((parents, tokens), places)
    done_B = is_done(state, rules=rules)
    return BeamState(
        position=state.position + 1,
        limits_B=state.limits_B,
        last_tokens_BxW=last_tokens,
        living=where_rows(done_B, state.living, new=going_on),
        finished=where_rows(done_B, state.finished, new=finished),
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
    rules: BeamParams,
) -> BeamState:
    """Takes steps until position `until`, or until every sentence is done.

    Args:
      state: where the search stands; its cache has room for `until` positions.
      memory: what `model.encode` returned.
      rules: what the search goes by.

    Returns:
      The state reached.
    """
    return decode_while(
        state,
        until=until,
        step=lambda state: beam_step(model, state, memory=memory, rules=rules),
        is_done=lambda state: is_done(state, rules=rules),
    )


def _best_continuations(
    logits_BxWxV: Array, state: BeamState, *, rules: BeamParams
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
        logits_BxWxV = mask_to_forced_token(logits_BxWxV, forced_B, pad=ids.pad)
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
    return gather_beams(hypotheses, places_BxW), places_BxW


class BeamResult(NamedTuple):
    """The outputs of a search, the best first; here W counts the outputs asked for.

    A place for which there was no output (a row of pad alone, a vocabulary too small
    for so many) has length 0 and is not finished.

    Attributes:
      tokens_BxWxT: [B, W, T] int32, the eos included, then pad.
      scores_BxW: [B, W] float32, log-probability / `((5 + n) / 6) ** alpha`.
      log_probabilities_BxW: [B, W] float32, summed over the tokens.
      lengths_BxW: [B, W] int32, n: decoded tokens, the eos included.
      finished_BxW: [B, W] bool, whether the output ended in eos. If not, it was
        truncated: finished outputs come first, whatever the scores.
    """

    tokens_BxWxT: jax.Array
    scores_BxW: jax.Array
    log_probabilities_BxW: jax.Array
    lengths_BxW: jax.Array
    finished_BxW: jax.Array


def beam_search(  # noqa: PLR0913
    model: StepModel,
    source_BxS: Array,
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    max_extra_tokens: int = 50,
    max_length: int | None = None,
    n_best: int = 1,
    min_tokens: int = 0,
    prefixes_BxP: Array | None = None,
    ids: SpecialIds = DEFAULT_IDS,
) -> BeamResult:
    """Searches the outputs of the highest score for each sentence.

    The rules: each step looks at the best 2W of the W x V continuations; those that end
    in eos are finished, the best W others live on; a sentence is done when no living
    hypothesis can overtake. What never finishes is returned as it lives, truncated.
    Probabilities are the model's own, over all V tokens; pad and bos are never said,
    unk may be. Of equal scores the earlier beam, then the lower token goes first.

    Pure, and safe under `jax.jit` and `jax.vmap`; all keyword arguments but the
    prefixes are static.

    Paper: section 6.1.

    Args:
      model: anything with the five methods of `StepModel`; a pytree if this function
        is jitted with the model as an argument. Its logits may hold -inf, but a
        reachable beam needs one finite number among them.
      source_BxS: [B, S] int tokens, pad after the end; the eos at the end is optional.
      beam_size: W, hypotheses alive per sentence. 1 with `length_penalty=0` is greedy.
      length_penalty: the paper's alpha, at least 0.
      max_extra_tokens: an output holds at most this many tokens more than its source
        holds subwords (its pad and eos not counted).
      max_length: T, bound for all outputs; None means S + `max_extra_tokens`.
      n_best: outputs per sentence, at most W. More than one makes the search longer.
      min_tokens: no output ends before it holds so many tokens, its eos not counted,
        unless it reaches its limit.
      prefixes_BxP: [B, P] int tokens that each output must begin with, then pad; None:
        anything. An output may hold one token more than its prefix in any case.
      ids: pad, bos and eos of the model.

    Returns:
      The `n_best` outputs of every sentence.

    Raises:
      UserError: an argument is out of range, the source is not [B, S], or its tokens
        are none of the model's.
      TypeError: the model is no `StepModel`, or the source is text.

    Example:
      A model of another kind: the next token depends on the last one alone.

      >>> class Bigrams(NamedTuple):
      ...     logits_VxV: jax.Array
      ...     def encode(self, source_BxS):
      ...         return source_BxS
      ...     def init_cache(self, memory, num_beams, length):
      ...         return ()
      ...     def step(self, tokens_BxW, memory, cache, position):
      ...         return self.logits_VxV[tokens_BxW], cache
      ...     def reorder(self, cache, parents_BxW):
      ...         return cache
      ...     def grow(self, cache, length):
      ...         return cache
      >>> logits_VxV = jnp.full((6, 6), -jnp.inf)
      >>> logits_VxV = logits_VxV.at[1, 4].set(0.0)  # bos -> 4
      >>> logits_VxV = logits_VxV.at[4, 5].set(0.0)  # 4 -> 5
      >>> logits_VxV = logits_VxV.at[5, 2].set(0.0)  # 5 -> eos
      >>> search = jax.jit(beam_search, static_argnames=("beam_size",))
      >>> result = search(Bigrams(logits_VxV), jnp.array([[4, 2]]), beam_size=2)
      >>> result.tokens_BxWxT[0, 0, : result.lengths_BxW[0, 0]].tolist()
      [4, 5, 2]
    """
    source_BxS = source_array(model, source_BxS, caller="beam_search")
    rules = BeamParams(beam_size, length_penalty, n_best, ids, min_tokens)
    room = validated_max_length(
        source_BxS, prefixes_BxP, max_extra_tokens, max_length=max_length, ids=ids
    )
    if not source_BxS.shape[0]:
        return no_outputs(n_best, room)
    memory = model.encode(source_BxS)
    limits_B = per_sentence_limits(
        source_BxS, max_extra_tokens=max_extra_tokens, max_length=room, ids=ids
    )
    state = init_state(
        model,
        memory,
        limits_B=limits_B,
        max_length=room,
        cache_length=room,
        rules=rules,
        prefixes_BxP=prefixes_BxP,
    )
    state = advance(model, state, memory=memory, until=room, rules=rules)
    return collect(state, rules=rules)


def no_outputs(count: int, length: int) -> BeamResult:
    """Makes the result for a batch of no sentences.

    Args:
      count: W, outputs asked for per sentence.

    Example:
      >>> no_outputs(2, 5).tokens_BxWxT.shape
      (0, 2, 5)
    """
    numbers_BxW = jnp.zeros((0, count), jnp.float32)
    return BeamResult(
        tokens_BxWxT=jnp.zeros((0, count, length), jnp.int32),
        scores_BxW=numbers_BxW,
        log_probabilities_BxW=numbers_BxW,
        lengths_BxW=jnp.zeros((0, count), jnp.int32),
        finished_BxW=jnp.zeros((0, count), bool),
    )


def collect(state: BeamState, *, rules: BeamParams) -> BeamResult:
    """Reads the outputs out of a search's last state.

    Args:
      state: where the search has stopped.

    Returns:
      The `rules.n_best` finished hypotheses of each sentence, filled up with its best
      living ones where it has fewer.
    """
    everything = concat_hypotheses(state.finished, state.living)
    finished_BxW = ~jnp.isneginf(state.finished.scores_BxW)
    num_finished_Bx1 = jnp.sum(finished_BxW, axis=1, keepdims=True, dtype=jnp.int32)
    rank_1xW = jnp.arange(rules.n_best, dtype=jnp.int32)[None, :]
    has_finished_BxW = rank_1xW < num_finished_Bx1
    # The living ones stand behind all W places of the finished.
    living_BxW = rules.beam_size + rank_1xW - num_finished_Bx1
    best = gather_beams(everything, jnp.where(has_finished_BxW, rank_1xW, living_BxW))
    is_output_BxWx1 = ~jnp.isneginf(best.scores_BxW)[..., None]
    tokens_BxWxT = jnp.where(is_output_BxWx1, best.tokens_BxWxT, rules.ids.pad)
    return BeamResult(
        tokens_BxWxT=tokens_BxWxT,
        scores_BxW=best.scores_BxW,
        log_probabilities_BxW=best.log_probabilities_BxW,
        lengths_BxW=jnp.sum(tokens_BxWxT != rules.ids.pad, axis=-1, dtype=jnp.int32),
        finished_BxW=has_finished_BxW,
    )
