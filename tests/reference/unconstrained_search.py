"""A beam search that has never heard of constraints: the program to equal without one.

Written from the description of `beam_search` and `beam_step`, for sources without
prefixes. It takes the operations on hypotheses from the package, and neither the
protocol of constraints nor what asks one.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.beam_state import (
    Hypotheses,
    best_hypotheses,
    concat_hypotheses,
    empty_hypotheses,
    gather_beams,
    mask_hypotheses,
    where_rows,
)
from t2t_jax.decoding.search.checks import source_array, validated_max_length
from t2t_jax.decoding.search.length_penalty import penalty_of, per_sentence_limits
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.decoding.search.top_k_top_p import top_k


class State(NamedTuple):
    position: jax.Array
    limits: jax.Array
    last: jax.Array
    living: Hypotheses
    finished: Hypotheses
    cache: Any


def beam_search(model, source_BxS, *, max_extra_tokens=50, **rules):
    """Searches as `t2t_jax.beam_search` does; `rules` are those of `BeamParams`."""
    source_BxS = source_array(model, source_BxS, caller="beam_search")
    params, extra = BeamParams(**rules), {"max_extra_tokens": max_extra_tokens}
    length = validated_max_length(source_BxS, None, params, **extra)
    memory = model.encode(source_BxS)
    limits_B = per_sentence_limits(source_BxS, params, max_length=length, **extra)
    state = first_state(model, memory, limits_B, length, params)

    def goes_on(state):
        is_before = jnp.asarray(state.position < length)
        return is_before & ~jnp.all(is_done(state, params))

    state = jax.lax.while_loop(goes_on, lambda s: step(model, memory, s, params), state)
    return result(state, params)


def first_state(model, memory, limits_B, length, params):
    rows, beams, ids = limits_B.shape[0], params.beam_size, params.ids
    nothing = empty_hypotheses(rows, beams, max_length=length, pad=ids.pad)
    first_BxW = nothing.scores_BxW.at[:, 0].set(0.0)
    cache = model.init_cache(memory, beams, length)
    own_BxW = jnp.broadcast_to(jnp.arange(beams)[None], (rows, beams))
    return State(
        position=jnp.zeros((), jnp.int32),
        limits=limits_B,
        last=jnp.full((rows, beams), ids.bos, jnp.int32),
        living=Hypotheses(nothing.tokens_BxWxT, first_BxW, first_BxW),
        finished=nothing,
        cache=model.reorder(cache, own_BxW),
    )


def is_done(state, params):
    best_B = state.living.log_probabilities_BxW[:, 0]
    if params.beam_rule == "shrinking":
        return (state.position >= state.limits) | jnp.isneginf(best_B)
    reachable_B = best_B / penalty_of(params, state.limits)
    certain_B = state.finished.scores_BxW[:, params.n_best - 1] >= reachable_B
    return (state.position >= state.limits) | certain_B


def continuations(logits_BxWxV, state, params):
    """The best 2W: parents, tokens and log-probabilities."""
    ids = params.ids
    normaliser_BxWx1 = jax.nn.logsumexp(
        jnp.asarray(logits_BxWxV, jnp.float32), axis=-1, keepdims=True
    )
    _, beams, vocabulary = logits_BxWxV.shape
    unwanted = 2 + bool(params.min_tokens) + (not params.allow_unk)
    best_BxWxC, tokens_BxWxC = top_k(
        logits_BxWxV, min(2 * beams + unwanted, vocabulary)
    )
    so_far_BxWx1 = state.living.log_probabilities_BxW[..., None]
    totals_BxWxC = so_far_BxWx1 + (best_BxWxC.astype(jnp.float32) - normaliser_BxWx1)
    invalid = (tokens_BxWxC == ids.pad) | (tokens_BxWxC == ids.bos)
    invalid |= jnp.isneginf(so_far_BxWx1)
    if params.min_tokens:
        invalid |= (tokens_BxWxC == ids.eos) & (state.position < params.min_tokens)
    if not params.allow_unk:
        invalid |= tokens_BxWxC == ids.unk
    totals_BxWxC = jnp.where(invalid, -jnp.inf, totals_BxWxC)
    rows, _, width = tokens_BxWxC.shape
    flat = (rows, beams * width)
    totals, indices = jax.lax.top_k(totals_BxWxC.reshape(flat), 2 * beams)
    tokens = jnp.take_along_axis(tokens_BxWxC.reshape(flat), indices, axis=1)
    return indices // width, tokens, totals


def step(model, memory, state, params):
    logits_BxWxV, cache = model.step(state.last, memory, state.cache, state.position)
    parents, tokens, totals = continuations(logits_BxWxV, state, params)
    so_far = gather_beams(state.living.tokens_BxWxT, parents)
    continued = Hypotheses(
        so_far.at[:, :, state.position].set(tokens),
        totals,
        totals / penalty_of(params, state.position + 1),
    )
    if params.beam_rule == "shrinking":
        finished_BxW = ~jnp.isneginf(state.finished.scores_BxW)
        left_Bx1 = params.beam_size - jnp.sum(finished_BxW, axis=1, keepdims=True)
        within = jnp.arange(2 * params.beam_size)[None, :] < left_Bx1
        continued = mask_hypotheses(within, continued)
    ends = tokens == params.ids.eos
    living, indices = best_hypotheses(
        mask_hypotheses(~ends, continued), params.beam_size
    )
    may_end = ends if params.beam_size > 1 else ends.at[:, 1:].set(False)
    ended = mask_hypotheses(may_end, continued)
    finished, _ = best_hypotheses(
        concat_hypotheses(state.finished, ended), params.beam_size
    )
    parents, last = gather_beams((parents, tokens), indices)
    done_B = is_done(state, params)
    return State(
        position=state.position + 1,
        limits=state.limits,
        last=last,
        living=where_rows(done_B, state.living, new=living),
        finished=where_rows(done_B, state.finished, new=finished),
        cache=model.reorder(cache, parents),
    )


def result(state, params):
    finished, living = state.finished, state.living
    everything = concat_hypotheses(finished, living)
    finished_BxW = ~jnp.isneginf(finished.scores_BxW)
    if params.beam_rule == "shrinking":
        best, indices = best_hypotheses(everything, params.n_best)
        has_finished_BxW = indices < jnp.sum(finished_BxW, axis=1, keepdims=True)
    else:
        count_Bx1 = jnp.sum(finished_BxW, axis=1, keepdims=True, dtype=jnp.int32)
        rank_1xW = jnp.arange(params.n_best, dtype=jnp.int32)[None, :]
        has_finished_BxW = rank_1xW < count_Bx1
        after_BxW = params.beam_size + rank_1xW - count_Bx1
        best = gather_beams(
            everything, jnp.where(has_finished_BxW, rank_1xW, after_BxW)
        )
    is_output = ~jnp.isneginf(best.scores_BxW)[..., None]
    tokens_BxWxT = jnp.where(is_output, best.tokens_BxWxT, params.ids.pad)
    return BeamResult(
        tokens_BxWxT=tokens_BxWxT,
        scores_BxW=best.scores_BxW,
        log_probabilities_BxW=best.log_probabilities_BxW,
        lengths_BxW=jnp.sum(tokens_BxWxT != params.ids.pad, axis=-1, dtype=jnp.int32),
        finished_BxW=has_finished_BxW,
    )
