"""Drawing outputs by their probability, each sentence with a randomness of its own."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.arguments import with_article
from t2t_jax.decoding.search.beam_search import BeamResult, no_outputs
from t2t_jax.decoding.search.hypotheses import decode_while
from t2t_jax.decoding.search.length_penalty import length_penalty, per_sentence_limits
from t2t_jax.decoding.search.prefix_constraints import (
    forced_tokens,
    raise_limits_for_prefix,
    source_array,
    validated_max_length,
)
from t2t_jax.decoding.search.static_params import SamplingParams
from t2t_jax.decoding.search.top_k import top_k, top_k_filter, top_p_filter
from t2t_jax.errors import UserError
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
    rules: SamplingParams,
    keys_BxK: Array,
    prefixes_BxP: Array | None = None,
) -> SampleState:
    """Makes the state before the first draw; the arguments are those of `init_state`.

    Args:
      memory: what `model.encode` returned for the B sentences.
      limits_B: [B] int32, the tokens that each output may hold.
      max_length: T, room for tokens; no limit may be above it.
      cache_length: positions that the model's cache has room for at first.
      keys_BxK: [B, K] uint32, the data of a PRNG key for each.
      prefixes_BxP: what each output must begin with, then pad; None: anything.

    Returns:
      The state at position 0.
    """
    rows, samples, ids = jnp.shape(limits_B)[0], rules.num_samples, rules.ids
    prefixes = None if prefixes_BxP is None else jnp.asarray(prefixes_BxP, jnp.int32)
    return SampleState(
        position=jnp.zeros((), jnp.int32),
        limits_B=raise_limits_for_prefix(
            limits_B, prefixes, max_length=max_length, pad=ids.pad
        ),
        keys_BxK=jnp.asarray(keys_BxK),
        last_tokens_BxW=jnp.full((rows, samples), ids.bos, jnp.int32),
        tokens_BxWxT=jnp.full((rows, samples, max_length), ids.pad, jnp.int32),
        log_probabilities_BxW=jnp.zeros((rows, samples), jnp.float32),
        ended_BxW=jnp.zeros((rows, samples), bool),
        cache=model.init_cache(memory, samples, cache_length),
        prefixes_BxP=prefixes,
    )


def is_done(state: SampleState, *, rules: SamplingParams) -> jax.Array:
    """Tells which sentences have all their samples.

    Returns:
      [B] bool.
    """
    del rules
    return (state.position >= state.limits_B) | jnp.all(state.ended_BxW, axis=1)


def sample_until(
    model: StepModel,
    state: SampleState,
    *,
    memory: PyTree,
    until: Array | int,
    rules: SamplingParams,
) -> SampleState:
    """Draws until position `until`, or until every sentence has its samples.

    Args:
      state: where drawing stands; its cache has room for `until` positions.
      memory: what `model.encode` returned.

    Returns:
      The state reached.
    """
    return decode_while(
        state,
        until=until,
        step=lambda state: _draw(model, state, memory=memory, rules=rules),
        is_done=lambda state: is_done(state, rules=rules),
    )


def collect_samples(state: SampleState, *, rules: SamplingParams) -> BeamResult:
    """Reads the samples out of the last state.

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
    model: StepModel, state: SampleState, *, memory: PyTree, rules: SamplingParams
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
    logs_BxWxV: jax.Array, state: SampleState, *, rules: SamplingParams
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
        weights_BxWxV = top_k_filter(weights_BxWxV, rules.top_k)
    if rules.top_p < 1:
        weights_BxWxV = top_p_filter(weights_BxWxV, rules.top_p)
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


_PLAIN = SamplingParams()


def sample(
    model: StepModel,
    source_BxS: Array,
    key: Array,
    *,
    rules: SamplingParams = _PLAIN,
    max_extra_tokens: int = 50,
    max_length: int | None = None,
    prefixes_BxP: Array | None = None,
) -> BeamResult:
    """Draws outputs for each sentence, token by token.

    A sentence's outputs depend on the key, its row and the model's logits alone: not on
    the sentences around it, nor on the room there is. Pure, and safe under `jax.jit`
    and `jax.vmap`; all but the arrays is static.

    Departs: section 6.1 searches with a beam.

    Args:
      model: anything with the five methods of `StepModel`.
      source_BxS: [B, S] int tokens, pad after the end; the eos at the end is optional.
      key: from `jax.random.key`, of JAX's default kind; or [B] of them, one for each
        sentence.
      rules: how to draw, and how often.
      max_extra_tokens: an output holds at most this many tokens more than its source
        holds subwords.
      max_length: T, bound for all outputs; None means S + `max_extra_tokens`.
      prefixes_BxP: [B, P] int tokens that each output must begin with, then pad.

    Returns:
      The samples of every sentence in the order they were drawn. Their
      log-probabilities are the model's own, whatever the temperature.

    Raises:
      UserError: an argument is out of range, the source is not [B, S], or its tokens
        are none of the model's.
      TypeError: the model is no `StepModel`, the rules no `SamplingParams`, the source
      is
        text, or there is no key.

    Example:
      >>> from typing import NamedTuple
      >>> class Coin(NamedTuple):  # heads (4) or tails (5) for ever
      ...     def encode(self, source_BxS):
      ...         return source_BxS
      ...     def init_cache(self, memory, num_beams, length):
      ...         return ()
      ...     def step(self, tokens_BxW, memory, cache, position):
      ...         coin = jnp.array([-jnp.inf] * 4 + [0.0, 0.0])
      ...         return jnp.broadcast_to(coin, (*tokens_BxW.shape, 6)), cache
      ...     def reorder(self, cache, parents_BxW):
      ...         return cache
      ...     def grow(self, cache, length):
      ...         return cache
      >>> tosses = sample(Coin(), jnp.array([[7, 2]]), jax.random.key(1), max_length=40)
      >>> sorted(set(tosses.tokens_BxWxT.ravel().tolist()))
      [4, 5]
    """
    source_BxS = source_array(model, source_BxS, caller="sample")
    if not isinstance(rules, SamplingParams):
        kind = with_article(type(rules).__name__)
        raise TypeError(
            f"sample takes SampleRules as rules, not {kind}. Pass "
            "t2t_jax.SampleRules(temperature=…)."
        )
    room = validated_max_length(
        source_BxS, prefixes_BxP, max_extra_tokens, max_length=max_length, ids=rules.ids
    )
    rows = source_BxS.shape[0]
    _check_key(key, rows)
    if not rows:
        return no_outputs(rules.num_samples, room)
    memory = model.encode(source_BxS)
    limits_B = per_sentence_limits(
        source_BxS, max_extra_tokens=max_extra_tokens, max_length=room, ids=rules.ids
    )
    state = init_samples(
        model,
        memory,
        limits_B=limits_B,
        max_length=room,
        cache_length=room,
        rules=rules,
        keys_BxK=jax.random.key_data(key if key.ndim else row_keys(key, rows)),
        prefixes_BxP=prefixes_BxP,
    )
    state = sample_until(model, state, memory=memory, until=room, rules=rules)
    return collect_samples(state, rules=rules)


def row_keys(key: Array, numbers: Array | int) -> jax.Array:
    """Makes a key for each of several sentences.

    Args:
      key: from `jax.random.key`.
      numbers: [B] whole numbers from 0 that tell the sentences apart, such as those of
        lines in a file; B itself stands for 0 to B - 1.

    Returns:
      [B] keys.

    Example:
      >>> key = jax.random.key(5)
      >>> bool(row_keys(key, 3)[2] == row_keys(key, jnp.array([2]))[0])
      True
    """
    numbers_B = jnp.arange(numbers) if isinstance(numbers, int) else numbers
    keys: jax.Array = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(
        key, jnp.asarray(numbers_B).astype(jnp.uint32)
    )
    return keys


def _check_key(key: Array, rows: int) -> None:
    if key is None:
        raise TypeError("sample takes a key, not None. Pass jax.random.key(seed).")
    is_key = jax.dtypes.issubdtype(jnp.asarray(key).dtype, jax.dtypes.prng_key)
    default = jax.random.key_impl(jax.random.key(0))
    kind = jax.random.key_impl(key) if is_key else jnp.asarray(key).dtype
    if kind != default or jnp.shape(key) not in ((), (rows,)):
        raise UserError(
            f"key of shape {jnp.shape(key)} and kind {kind} must be one key of kind "
            f"{default}, or one for each of the {rows} sentences. Pass "
            "jax.random.key(seed)."
        )
