"""Beam search over any model that can say what comes next. Section 6.1 of the paper."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.beam_step import BeamState, advance, init_state
from t2t_jax.decoding.constraints import checked_room, source_array
from t2t_jax.decoding.hypotheses import join, take_places
from t2t_jax.decoding.lengths import OUR_IDS, SpecialIds, output_limits
from t2t_jax.decoding.rules import BeamRules
from t2t_jax.types import Array, StepModel


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
    ids: SpecialIds = OUR_IDS,
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
    rules = BeamRules(beam_size, length_penalty, n_best, ids, min_tokens)
    room = checked_room(
        source_BxS, prefixes_BxP, max_extra_tokens, max_length=max_length, ids=ids
    )
    if not source_BxS.shape[0]:
        return no_outputs(n_best, room)
    memory = model.encode(source_BxS)
    limits_B = output_limits(
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
      length: T.

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


def collect(state: BeamState, *, rules: BeamRules) -> BeamResult:
    """Reads the outputs out of a search's last state.

    Args:
      state: where the search has stopped.
      rules: what it went by.

    Returns:
      The `rules.n_best` finished hypotheses of each sentence, filled up with its best
      living ones where it has fewer.
    """
    everything = join(state.finished, state.living)
    finished_BxW = ~jnp.isneginf(state.finished.scores_BxW)
    num_finished_Bx1 = jnp.sum(finished_BxW, axis=1, keepdims=True, dtype=jnp.int32)
    rank_1xW = jnp.arange(rules.n_best, dtype=jnp.int32)[None, :]
    has_finished_BxW = rank_1xW < num_finished_Bx1
    # The living ones stand behind all W places of the finished.
    living_BxW = rules.beam_size + rank_1xW - num_finished_Bx1
    best = take_places(everything, jnp.where(has_finished_BxW, rank_1xW, living_BxW))
    is_output_BxWx1 = ~jnp.isneginf(best.scores_BxW)[..., None]
    tokens_BxWxT = jnp.where(is_output_BxWx1, best.tokens_BxWxT, rules.ids.pad)
    return BeamResult(
        tokens_BxWxT=tokens_BxWxT,
        scores_BxW=best.scores_BxW,
        log_probabilities_BxW=best.log_probabilities_BxW,
        lengths_BxW=jnp.sum(tokens_BxWxT != rules.ids.pad, axis=-1, dtype=jnp.int32),
        finished_BxW=has_finished_BxW,
    )
