"""Beam search for any `StepModel`. Section 6.1 of the paper."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.beam_state import (
    BeamSearch,
    BeamState,
    Hypotheses,
    best_hypotheses,
    concat_hypotheses,
    empty_hypotheses,
    gather_beams,
    mask_hypotheses,
    run_until,
    where_rows,
)
from t2t_jax.decoding.search.checks import (
    check_returns,
    require_params,
    source_array,
    validated_max_length,
)
from t2t_jax.decoding.search.constraint import UNCONSTRAINED, Constraint
from t2t_jax.decoding.search.continuations import (
    HIGHEST_BANK,
    advance_constraint,
    best_continuations,
    has_banks,
    order,
)
from t2t_jax.decoding.search.length_penalty import penalty_of, per_sentence_limits
from t2t_jax.decoding.search.prefix_constraints import raise_limits_for_prefix
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.types import Array, PyTree, StepModel


class BeamResult(NamedTuple):
    """The outputs of a search, best first; here W is the number of outputs requested.

    Missing outputs (a row of only pad, a vocabulary too small for `n_best`) have length
    0 and are not finished.

    Attributes:
      tokens_BxWxT: [B, W, T] int32, the eos included, then pad.
      scores_BxW: [B, W] float32, log-probability / `length_penalty(n, alpha)`.
      log_probabilities_BxW: [B, W] float32, summed over the tokens.
      lengths_BxW: [B, W] int32, n: decoded tokens, the eos included.
      finished_BxW: [B, W] bool, whether the output ended in eos. If not, it was
        truncated: finished outputs come first, whatever the scores, unless the beam
        shrinks.
    """

    tokens_BxWxT: jax.Array
    scores_BxW: jax.Array
    log_probabilities_BxW: jax.Array
    lengths_BxW: jax.Array
    finished_BxW: jax.Array


_DEFAULT_PARAMS = BeamParams()


def beam_search(
    model: StepModel,
    source_BxS: Array,
    *,
    params: BeamParams = _DEFAULT_PARAMS,
    max_extra_tokens: int = 50,
    max_length: int | None = None,
    prefixes_BxP: Array | None = None,
    constraint: Constraint | None = None,
    constraint_rows: PyTree = None,
) -> BeamResult:
    """Returns the outputs with the highest scores for each sentence.

    Each step considers the best 2W of the W x V continuations; those that end in eos
    are finished, the best W others stay live; a sentence is done when no live
    hypothesis can overtake the finished ones. Outputs that never finish are returned
    truncated. Probabilities are normalized over all V tokens; pad and bos are never
    generated, unk may be. Ties go to the earlier beam, then to the lower token.

    With the `beam_rule` "shrinking" a step considers as many continuations as there are
    live hypotheses, W at first; those that end in eos are finished, and the others
    live on. A sentence is done when all W are finished, or at its limit, where those
    without an eos are ranked with the finished ones, by score.

    Pure, and safe under `jax.jit` and `jax.vmap`; all keyword arguments but the
    prefixes, the constraint and its rows are static.

    Paper: section 6.1.

    Args:
      model: any `StepModel`; a pytree if this function is jitted with the model as an
        argument. Its logits may hold -inf, but a reachable beam needs one finite number
        among them.
      source_BxS: [B, S] int tokens, pad after the end; the eos at the end is optional.
      params: the beam, its rule and what its scores are divided by.
      max_extra_tokens: maximum length of an output beyond the subwords of its source
        (pad and eos not counted).
      max_length: T, maximum length of all outputs; None means the longest limit.
      prefixes_BxP: [B, P] int forced prefixes, then pad; None for none. An output may
        always hold one token more than its prefix.
      constraint: restricts the outputs, see `Constraint`; None for none.
      constraint_rows: what the constraint has to know of each sentence, a pytree whose
        leaves begin with axis B.

    Returns:
      The `params.n_best` outputs of every sentence.

    Raises:
      UserError: an argument is out of range, the source is not [B, S], or its tokens
        are not in the model's vocabulary.
      TypeError: the model is not a `StepModel` or one of its methods returns other
        shapes, `params` is not `BeamParams`, or the source is text.

    Example:
      A model of another kind: the next token depends on only the last one.

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
      >>> search = jax.jit(beam_search, static_argnames=("params",))
      >>> source_BxS, params = jnp.array([[4, 2]]), BeamParams(beam_size=2)
      >>> result = search(Bigrams(logits_VxV), source_BxS, params=params)
      >>> result.tokens_BxWxT[0, 0, : result.lengths_BxW[0, 0]].tolist()
      [4, 5, 2]
    """
    source_BxS = source_array(model, source_BxS, caller="beam_search")
    require_params(params, BeamParams, caller="beam_search", name="params")
    bounds: dict[str, Any] = {"max_extra_tokens": max_extra_tokens}
    bounds["max_length"] = max_length = validated_max_length(
        source_BxS, prefixes_BxP, params, max_length=max_length, **bounds
    )
    if not source_BxS.shape[0]:
        return empty_result(params.n_best, max_length)
    memory = model.encode(source_BxS)
    tokens = jax.ShapeDtypeStruct((source_BxS.shape[0], params.beam_size), jnp.int32)
    check_returns(
        model, memory, tokens, params=params, length=max_length, caller="beam_search"
    )
    search = BeamSearch(model, params, constraint or UNCONSTRAINED)
    state = init_state(
        search,
        memory,
        limits_B=per_sentence_limits(source_BxS, params, **bounds),
        max_length=max_length,
        cache_length=max_length,
        prefixes_BxP=prefixes_BxP,
        constraint_rows=constraint_rows,
    )
    state = advance(search, state, memory=memory, until=max_length)
    return collect(search, state)


def init_state(
    search: BeamSearch,
    memory: PyTree,
    *,
    limits_B: Array,
    max_length: int,
    cache_length: int,
    prefixes_BxP: Array | None = None,
    constraint_rows: PyTree = None,
) -> BeamState:
    """Initializes the search state; only beam 0 is live, as all W would be equal.

    A limit within a prefix is raised. The cache has a capacity of `cache_length`.
    """
    model, beams, ids = search.model, search.params.beam_size, search.params.ids
    limits_B = raise_limits_for_prefix(
        limits_B, prefixes_BxP, max_length=max_length, pad=ids.pad
    )
    rows = limits_B.shape[0]
    nothing = empty_hypotheses(rows, beams, max_length=max_length, pad=ids.pad)
    first_BxW = nothing.scores_BxW.at[:, 0].set(0.0)
    cache = model.init_cache(memory, beams, cache_length)
    # A cache may store a pending reordering; here it gets the structure that it will
    # have after every step.
    own_BxW = jnp.broadcast_to(jnp.arange(beams)[None], (rows, beams))
    constraint_rows = jax.tree.map(jnp.asarray, constraint_rows)
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
        constraint_rows=constraint_rows,
        constraint_state=search.constraint.init(
            constraint_rows, limits_B=limits_B, num_beams=beams
        ),
    )


def is_done(search: BeamSearch, state: BeamState) -> jax.Array:
    """Returns which sentences cannot improve any more, [B] bool.

    A sentence is done at its limit, or when its `n_best`-th finished score is at least
    the bound of its best live hypothesis: a log-probability only falls, and the penalty
    is largest at the limit, whatever its normalization and its exponent. With a
    shrinking beam it is done when none lives.
    """
    best_living_B = state.living.log_probabilities_BxW[:, 0]
    if search.params.beam_rule == "shrinking":
        return (state.position >= state.limits_B) | jnp.isneginf(best_living_B)
    reachable_B = best_living_B / penalty_of(search.params, state.limits_B)
    certain_B = state.finished.scores_BxW[:, search.params.n_best - 1] >= reachable_B
    return (state.position >= state.limits_B) | certain_B


def beam_step(search: BeamSearch, state: BeamState, *, memory: PyTree) -> BeamState:
    """Extends every live hypothesis by one token.

    Considers the best 2W of the W x V continuations, since at most W of them end in
    eos. Those that do are merged with the finished ones, of which the best W are kept;
    the best W of the others stay live. A sentence that is done does not change. Where
    a constraint has banks, the best ones are those of `divide_among_banks`.

    Paper: section 6.1 says "beam search"; the details are those of the authors'
    program.
    """
    logits_BxWxV, cache = search.model.step(
        state.last_tokens_BxW, memory, state.cache, state.position
    )
    parents, tokens, log_probabilities = best_continuations(search, state, logits_BxWxV)
    so_far = gather_beams(state.living.tokens_BxWxT, parents)
    continued = Hypotheses(
        so_far.at[:, :, state.position].set(tokens),
        log_probabilities,
        log_probabilities / penalty_of(search.params, state.position + 1),
    )
    if search.params.beam_rule == "shrinking":
        continued = mask_hypotheses(_within_beam(state), continued)
    beams, ends = search.params.beam_size, tokens == search.params.ids.eos
    lives = ~ends
    if has_banks(search, state):  # The first W, whatever their scores.
        lives &= jnp.cumsum(lives, axis=1) <= beams
    living, indices = best_hypotheses(mask_hypotheses(lives, continued), beams)
    # A single beam is greedy: an eos that is only second best does not count.
    may_end = ends if beams > 1 else ends.at[:, 1:].set(False)
    ended = mask_hypotheses(may_end, continued)
    finished, _ = best_hypotheses(concat_hypotheses(state.finished, ended), beams)
    parents, last_tokens = gather_beams((parents, tokens), indices)
    done_B = is_done(search, state)
    held = advance_constraint(search, state, parents, last_tokens)
    return state._replace(
        position=state.position + 1,
        last_tokens_BxW=last_tokens,
        living=where_rows(done_B, state.living, new=living),
        finished=where_rows(done_B, state.finished, new=finished),
        # The cache of a done sentence is never read again: no need to freeze it.
        cache=search.model.reorder(cache, parents),
        constraint_state=where_rows(done_B, state.constraint_state, new=held),
    )


def advance(
    search: BeamSearch, state: BeamState, *, memory: PyTree, until: Array | int
) -> BeamState:
    """Runs `beam_step` until position `until`, or until every sentence is done.

    The cache must have capacity for `until` positions.
    """
    return run_until(
        until,
        state,
        step=partial(beam_step, search, memory=memory),
        is_done=partial(is_done, search),
    )


def collect(search: BeamSearch, state: BeamState) -> BeamResult:
    """Returns the best `n_best` finished hypotheses of each sentence.

    Where a sentence has fewer, its best live ones follow, those of the highest bank
    first; of a shrinking beam the live ones that may end are ranked with the finished
    ones.
    """
    params = search.params
    living, banks_BxW = _ranked_living(search, state)
    everything = concat_hypotheses(state.finished, living)
    finished_BxW = ~jnp.isneginf(state.finished.scores_BxW)
    if params.beam_rule == "shrinking":
        if banks_BxW is None:
            best, chosen_BxW = best_hypotheses(everything, params.n_best)
        else:
            banks_BxC = jnp.concatenate(
                [jnp.full_like(banks_BxW, HIGHEST_BANK), banks_BxW], axis=1
            )
            chosen_BxW = order(everything.scores_BxW, banks_BxC)[:, : params.n_best]
            best = gather_beams(everything, chosen_BxW)
        is_finished_BxW = chosen_BxW < jnp.sum(finished_BxW, axis=1, keepdims=True)
    else:
        num_finished_Bx1 = jnp.sum(finished_BxW, axis=1, keepdims=True, dtype=jnp.int32)
        rank_1xW = jnp.arange(params.n_best, dtype=jnp.int32)[None, :]
        is_finished_BxW = rank_1xW < num_finished_Bx1
        # The live hypotheses follow all W finished ones.
        living_BxW = params.beam_size + rank_1xW - num_finished_Bx1
        best = gather_beams(
            everything, jnp.where(is_finished_BxW, rank_1xW, living_BxW)
        )
    is_output_BxWx1 = ~jnp.isneginf(best.scores_BxW)[..., None]
    tokens_BxWxT = jnp.where(is_output_BxWx1, best.tokens_BxWxT, params.ids.pad)
    return BeamResult(
        tokens_BxWxT=tokens_BxWxT,
        scores_BxW=best.scores_BxW,
        log_probabilities_BxW=best.log_probabilities_BxW,
        lengths_BxW=jnp.sum(tokens_BxWxT != params.ids.pad, axis=-1, dtype=jnp.int32),
        finished_BxW=is_finished_BxW,
    )


def _ranked_living(
    search: BeamSearch, state: BeamState
) -> tuple[Hypotheses, jax.Array | None]:
    """Returns the live hypotheses, those of the highest bank first, and their banks.

    Returns:
      The hypotheses, and [B, W] int32, `HIGHEST_BANK` for those that may end; None
      without banks.
    """
    held, given = state.constraint_state, state.constraint_rows
    banks_BxW = search.constraint.banks(held, given)
    may_end_BxW = search.constraint.may_end(held, given)
    if banks_BxW is None:
        return state.living, None
    if may_end_BxW is not None:
        banks_BxW = jnp.where(may_end_BxW, HIGHEST_BANK, banks_BxW)
    indices_BxW = order(state.living.scores_BxW, banks_BxW)
    living, banks = gather_beams((state.living, jnp.asarray(banks_BxW)), indices_BxW)
    return living, banks


def empty_result(count: int, length: int) -> BeamResult:
    """Returns the result for a batch without sentences."""
    numbers_BxW = jnp.zeros((0, count), jnp.float32)
    return BeamResult(
        tokens_BxWxT=jnp.zeros((0, count, length), jnp.int32),
        scores_BxW=numbers_BxW,
        log_probabilities_BxW=numbers_BxW,
        lengths_BxW=jnp.zeros((0, count), jnp.int32),
        finished_BxW=jnp.zeros((0, count), bool),
    )


def _within_beam(state: BeamState) -> jax.Array:
    """Returns which of the best 2W continuations a shrinking beam takes, [B, 2W]."""
    living_BxW = state.living.log_probabilities_BxW
    beams = living_BxW.shape[1]
    # All W at first, when one hypothesis lives: each finished one takes a beam.
    finished_BxW = ~jnp.isneginf(state.finished.scores_BxW)
    left_Bx1 = beams - jnp.sum(finished_BxW, axis=1, keepdims=True)
    return jnp.arange(2 * beams)[None, :] < left_Bx1
