"""One position of drawing: its state, its step, and when it may stop.

As in `beam_step`, everything is a pure function of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.beam_search import BeamResult
from t2t_jax.decoding.constraints import forced_tokens, with_room_for
from t2t_jax.decoding.lengths import length_penalty
from t2t_jax.decoding.nucleus import most_probable, nucleus
from t2t_jax.decoding.rules import SampleRules
from t2t_jax.decoding.stepping import take_steps
from t2t_jax.decoding.top_k import top_k
from t2t_jax.types import Array, PyTree, StepModel


class SampleState(NamedTuple):
    """Where drawing stands; here W counts the samples of a sentence.

    Attributes:
      position: int32 scalar, the tokens drawn so far.
      limits_B: [B] int32, the tokens that an output may hold, 0 for an empty row.
      keys_BxK: [B, K] uint32, the data of each sentence's own PRNG key.
      last_tokens_BxW: [B, W] int32, what each sample reads next.
      tokens_BxWxT: [B, W, T] int32, pad after the last one.
      log_probabilities_BxW: [B, W] float32, the model's own.
      ended_BxW: [B, W] bool, whether eos was drawn.
      cache: the model's own state of the samples.
      prefixes_BxP: [B, P] int32, what each output must begin with; None: anything.
    """

    position: jax.Array
    limits_B: jax.Array
    keys_BxK: jax.Array
    last_tokens_BxW: jax.Array
    tokens_BxWxT: jax.Array
    log_probabilities_BxW: jax.Array
    ended_BxW: jax.Array
    cache: PyTree
    prefixes_BxP: jax.Array | None = None


def init_samples(
    model: StepModel,
    memory: PyTree,
    *,
    limits_B: Array,
    max_length: int,
    cache_length: int,
    rules: SampleRules,
    keys_BxK: Array,
    prefixes_BxP: Array | None = None,
) -> SampleState:
    """Makes the state before the first draw; the arguments are those of `init_state`.

    Args:
      model: what is drawn from.
      memory: what `model.encode` returned for the B sentences.
      limits_B: [B] int32, the tokens that each output may hold.
      max_length: T, room for tokens; no limit may be above it.
      cache_length: positions that the model's cache has room for at first.
      rules: how to draw.
      keys_BxK: [B, K] uint32, the data of a PRNG key for each.
      prefixes_BxP: what each output must begin with, then pad; None: anything.

    Returns:
      The state at position 0.
    """
    rows, samples, ids = jnp.shape(limits_B)[0], rules.num_samples, rules.ids
    prefixes = None if prefixes_BxP is None else jnp.asarray(prefixes_BxP, jnp.int32)
    return SampleState(
        position=jnp.zeros((), jnp.int32),
        limits_B=with_room_for(limits_B, prefixes, max_length=max_length, pad=ids.pad),
        keys_BxK=jnp.asarray(keys_BxK),
        last_tokens_BxW=jnp.full((rows, samples), ids.bos, jnp.int32),
        tokens_BxWxT=jnp.full((rows, samples, max_length), ids.pad, jnp.int32),
        log_probabilities_BxW=jnp.zeros((rows, samples), jnp.float32),
        ended_BxW=jnp.zeros((rows, samples), bool),
        cache=model.init_cache(memory, samples, cache_length),
        prefixes_BxP=prefixes,
    )


def all_drawn(state: SampleState, *, rules: SampleRules) -> jax.Array:
    """Tells which sentences have all their samples.

    Args:
      state: where drawing stands.
      rules: how it is done.

    Returns:
      [B] bool.
    """
    del rules
    return (state.position >= state.limits_B) | jnp.all(state.ended_BxW, axis=1)


def draw_until(
    model: StepModel,
    state: SampleState,
    *,
    memory: PyTree,
    until: Array | int,
    rules: SampleRules,
) -> SampleState:
    """Draws until position `until`, or until every sentence has its samples.

    Args:
      model: what is drawn from.
      state: where drawing stands; its cache has room for `until` positions.
      memory: what `model.encode` returned.
      until: position to stop at.
      rules: how to draw.

    Returns:
      The state reached.
    """
    return take_steps(
        state,
        until=until,
        step=lambda state: _draw(model, state, memory=memory, rules=rules),
        is_done=lambda state: all_drawn(state, rules=rules),
    )


def collect_samples(state: SampleState, *, rules: SampleRules) -> BeamResult:
    """Reads the samples out of the last state.

    Args:
      state: where drawing has stopped.
      rules: what it went by.

    Returns:
      All W of each sentence; those of an empty row have length 0.
    """
    lengths = jnp.sum(state.tokens_BxWxT != rules.ids.pad, axis=-1, dtype=jnp.int32)
    penalty = length_penalty(jnp.maximum(lengths, 1), rules.length_penalty)
    return BeamResult(
        tokens_BxWxT=state.tokens_BxWxT,
        scores_BxW=state.log_probabilities_BxW / penalty,
        log_probabilities_BxW=state.log_probabilities_BxW,
        lengths_BxW=lengths,
        finished_BxW=state.ended_BxW,
    )


def _draw(
    model: StepModel, state: SampleState, *, memory: PyTree, rules: SampleRules
) -> SampleState:
    """Draws every sample's next token."""
    logits_BxWxV, cache = model.step(
        state.last_tokens_BxW, memory, state.cache, state.position
    )
    logs_BxWxV = jax.nn.log_softmax(jnp.asarray(logits_BxWxV, jnp.float32))
    tokens_BxW = _chosen(logs_BxWxV, state, rules=rules)
    gain_BxW = jnp.take_along_axis(logs_BxWxV, tokens_BxW[..., None], axis=-1)[..., 0]
    is_open_BxW = ~state.ended_BxW & (state.position < state.limits_B)[:, None]
    tokens_BxW = jnp.where(is_open_BxW, tokens_BxW, rules.ids.pad)
    return state._replace(
        position=state.position + 1,
        last_tokens_BxW=tokens_BxW,
        tokens_BxWxT=state.tokens_BxWxT.at[:, :, state.position].set(tokens_BxW),
        log_probabilities_BxW=state.log_probabilities_BxW
        + jnp.where(is_open_BxW, gain_BxW, 0.0),
        ended_BxW=state.ended_BxW | (tokens_BxW == rules.ids.eos),
        cache=cache,
    )


def _chosen(
    logs_BxWxV: jax.Array, state: SampleState, *, rules: SampleRules
) -> jax.Array:
    """Draws one token for each sample, or takes the one that is forced: [B, W]."""
    ids = rules.ids
    tokens_1x1xV = jnp.arange(logs_BxWxV.shape[-1], dtype=jnp.int32)[None, None]
    void_1x1xV = (tokens_1x1xV == ids.pad) | (tokens_1x1xV == ids.bos)
    void_1x1xV |= (tokens_1x1xV == ids.eos) & (state.position < rules.min_tokens)
    weights_BxWxV = jnp.where(void_1x1xV, -jnp.inf, logs_BxWxV)
    # The best one is 0 then, which no temperature sends to -inf.
    highest_BxWx1 = jnp.max(weights_BxWxV, axis=-1, keepdims=True)
    weights_BxWxV = (weights_BxWxV - highest_BxWx1) / rules.temperature
    if rules.top_k:
        weights_BxWxV = most_probable(weights_BxWxV, rules.top_k)
    if rules.top_p < 1:
        weights_BxWxV = nucleus(weights_BxWxV, rules.top_p)
    noise_BxWxV = _noise(state, logs_BxWxV.shape[1:])
    # The place of the largest sum is a draw by probability (Gumbel's trick); `argmax`
    # is slow over a vocabulary.
    _, drawn_BxWx1 = top_k(weights_BxWxV + noise_BxWxV, 1)
    if state.prefixes_BxP is None:
        return drawn_BxWx1[..., 0]
    forced_Bx1 = forced_tokens(state.prefixes_BxP, state.position, pad=ids.pad)[:, None]
    return jnp.where(forced_Bx1 == ids.pad, drawn_BxWx1[..., 0], forced_Bx1)


def _noise(state: SampleState, shape: tuple[int, ...]) -> jax.Array:
    """Draws Gumbel noise [B, W, V] that knows of sentence, sample and position."""
    samples, vocabulary = shape
    keys_B = jax.random.wrap_key_data(state.keys_BxK)

    def of_sample(key: jax.Array, number: jax.Array) -> jax.Array:
        key = jax.random.fold_in(jax.random.fold_in(key, number), state.position)
        return jax.random.gumbel(key, (vocabulary,), jnp.float32)

    of_line = jax.vmap(of_sample, in_axes=(None, 0))
    of_all = jax.vmap(of_line, in_axes=(0, None))
    noise: jax.Array = of_all(keys_B, jnp.arange(samples, dtype=jnp.uint32))
    return noise
