"""Samples outputs from the model's distribution, with a PRNG key per sentence."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.beam_search import BeamResult, empty_result
from t2t_jax.decoding.search.beam_state import run_until
from t2t_jax.decoding.search.checks import (
    check_returns,
    require_params,
    source_array,
    validated_max_length,
)
from t2t_jax.decoding.search.length_penalty import penalty_of, per_sentence_limits
from t2t_jax.decoding.search.prefix_constraints import (
    forced_tokens,
    raise_limits_for_prefix,
)
from t2t_jax.decoding.search.static_params import SamplingParams
from t2t_jax.decoding.search.top_k_top_p import top_k, top_k_filter, top_p_filter
from t2t_jax.errors import UserError
from t2t_jax.types import Array, PyTree, StepModel

_DEFAULT_PARAMS = SamplingParams()


def sample(
    model: StepModel,
    source_BxS: Array,
    key: Array,
    *,
    sampling_params: SamplingParams = _DEFAULT_PARAMS,
    max_extra_tokens: int = 50,
    max_length: int | None = None,
    prefixes_BxP: Array | None = None,
) -> BeamResult:
    """Samples outputs for each sentence, token by token.

    A sentence's outputs depend on the key, its row and the model's logits only: not on
    the sentences around it, nor on `max_length`. Pure, and safe under `jax.jit`
    and `jax.vmap`; all arguments but the arrays are static.

    Departs: section 6.1 searches with a beam.

    Args:
      model: any `StepModel`.
      source_BxS: [B, S] int tokens, pad after the end; the eos at the end is optional.
      key: from `jax.random.key`, with JAX's default implementation; or [B] keys, one
        for each sentence.
      sampling_params: the number of samples, the temperature and the filters.
      max_extra_tokens: maximum length of an output beyond the subwords of its source.
      max_length: T, maximum length of all outputs; None means the longest limit.
      prefixes_BxP: [B, P] int forced prefixes, then pad; None for none.

    Returns:
      The samples of every sentence in the order they were drawn. Their
      log-probabilities are the model's own, whatever the temperature.

    Raises:
      UserError: an argument is out of range, the source is not [B, S], or its tokens
        are not in the model's vocabulary.
      TypeError: the model is not a `StepModel` or one of its methods returns other
        shapes, `sampling_params` is not `SamplingParams`, the source is text, or the
        key is None.

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
    params, caller = sampling_params, "sample"
    source_BxS = source_array(model, source_BxS, caller=caller)
    require_params(params, SamplingParams, caller=caller, name="sampling_params")
    bounds: dict[str, Any] = {"max_extra_tokens": max_extra_tokens}
    bounds["max_length"] = max_length = validated_max_length(
        source_BxS, prefixes_BxP, params, max_length=max_length, **bounds
    )
    rows = source_BxS.shape[0]
    _check_key(key, rows)
    if not rows:
        return empty_result(params.num_samples, max_length)
    memory = model.encode(source_BxS)
    tokens = jax.ShapeDtypeStruct((rows, params.num_samples), jnp.int32)
    check_returns(
        model, memory, tokens, params=params, length=max_length, caller=caller
    )
    search = Sampling(model, params)
    state = init_state(
        search,
        memory,
        limits_B=per_sentence_limits(source_BxS, params, **bounds),
        max_length=max_length,
        cache_length=max_length,
        keys_BxK=jax.random.key_data(key if key.ndim else row_keys(key, rows)),
        prefixes_BxP=prefixes_BxP,
    )
    state = advance(search, state, memory=memory, until=max_length)
    return collect(search, state)


def row_keys(key: Array, numbers: Array | int) -> jax.Array:
    """Derives one key per sentence.

    Args:
      numbers: [B] whole numbers from 0 that identify the sentences, such as line
        numbers; an int B stands for 0 to B - 1.

    Example:
      >>> key = jax.random.key(5)
      >>> bool(row_keys(key, 3)[2] == row_keys(key, jnp.array([2]))[0])
      True
    """
    numbers_B = jnp.arange(numbers) if isinstance(numbers, int) else numbers
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(
        key, jnp.asarray(numbers_B).astype(jnp.uint32)
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sampling:
    """What is sampled from, and how: a pytree whose parameters are static."""

    model: StepModel
    params: SamplingParams = dataclasses.field(metadata={"static": True})


class SampleState(NamedTuple):
    """The state of sampling between two positions; W counts the samples of a sentence.

    Attributes:
      limits_B: [B] int32, maximum tokens of an output, 0 for an empty row.
      keys_BxK: [B, K] uint32, the data of each sentence's PRNG key.
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


def init_state(
    search: Sampling,
    memory: PyTree,
    *,
    limits_B: Array,
    max_length: int,
    cache_length: int,
    keys_BxK: Array,
    prefixes_BxP: Array | None = None,
) -> SampleState:
    """Initializes the state before the first token."""
    rows, samples = jnp.shape(limits_B)[0], search.params.num_samples
    ids = search.params.ids
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
        cache=search.model.init_cache(memory, samples, cache_length),
        prefixes_BxP=prefixes,
    )


def is_done(search: Sampling, state: SampleState) -> jax.Array:
    """Returns which sentences have all their samples, [B] bool."""
    del search
    return (state.position >= state.limits_B) | jnp.all(state.ended_BxW, axis=1)


def advance(
    search: Sampling, state: SampleState, *, memory: PyTree, until: Array | int
) -> SampleState:
    """Samples until position `until`, or until every sentence is done.

    The cache must have capacity for `until` positions.
    """
    step = partial(_sample_step, search, memory=memory)
    return run_until(until, state, step=step, is_done=partial(is_done, search))


def collect(search: Sampling, state: SampleState) -> BeamResult:
    """Returns all W samples of each sentence; those of an empty row have length 0."""
    pad = search.params.ids.pad
    lengths = jnp.sum(state.tokens_BxWxT != pad, axis=-1, dtype=jnp.int32)
    penalty = penalty_of(search.params, jnp.maximum(lengths, 1))
    return BeamResult(
        tokens_BxWxT=state.tokens_BxWxT,
        scores_BxW=state.log_probabilities_BxW / penalty,
        log_probabilities_BxW=state.log_probabilities_BxW,
        lengths_BxW=lengths,
        finished_BxW=state.ended_BxW,
    )


def _sample_step(
    search: Sampling, state: SampleState, *, memory: PyTree
) -> SampleState:
    """Samples the next token of every sample."""
    ids = search.params.ids
    logits_BxWxV, cache = search.model.step(
        state.last_tokens_BxW, memory, state.cache, state.position
    )
    logs_BxWxV = jax.nn.log_softmax(jnp.asarray(logits_BxWxV, jnp.float32))
    tokens_BxW = _next_tokens(logs_BxWxV, state, search.params)
    gain_BxW = jnp.take_along_axis(logs_BxWxV, tokens_BxW[..., None], axis=-1)[..., 0]
    if search.params.forbidden:  # a tag that is forced costs nothing
        is_tag_BxW = jnp.isin(tokens_BxW, jnp.array(search.params.forbidden))
        gain_BxW = jnp.where(is_tag_BxW, 0.0, gain_BxW)
    is_open_BxW = ~state.ended_BxW & (state.position < state.limits_B)[:, None]
    tokens_BxW = jnp.where(is_open_BxW, tokens_BxW, ids.pad)
    return state._replace(
        position=state.position + 1,
        last_tokens_BxW=tokens_BxW,
        tokens_BxWxT=state.tokens_BxWxT.at[:, :, state.position].set(tokens_BxW),
        log_probabilities_BxW=state.log_probabilities_BxW
        + jnp.where(is_open_BxW, gain_BxW, 0.0),
        ended_BxW=state.ended_BxW | (tokens_BxW == ids.eos),
        cache=cache,
    )


def _next_tokens(
    logs_BxWxV: jax.Array, state: SampleState, params: SamplingParams
) -> jax.Array:
    """Samples a token for each sample, or takes the forced one: [B, W]."""
    ids = params.ids
    tokens_1x1xV = jnp.arange(logs_BxWxV.shape[-1], dtype=jnp.int32)[None, None]
    may_end = state.position >= params.min_tokens
    invalid_1x1xV = (tokens_1x1xV == ids.pad) | (tokens_1x1xV == ids.bos)
    invalid_1x1xV |= (tokens_1x1xV == ids.eos) & ~may_end
    if not params.allow_unk:
        invalid_1x1xV |= tokens_1x1xV == ids.unk
    if params.forbidden:
        invalid_1x1xV = invalid_1x1xV.at[..., params.forbidden].set(True)
    weights_BxWxV = jnp.where(invalid_1x1xV, -jnp.inf, logs_BxWxV)
    # Shift the maximum to 0, so that no temperature makes it -inf.
    highest_BxWx1 = jnp.max(weights_BxWxV, axis=-1, keepdims=True)
    weights_BxWxV = (weights_BxWxV - highest_BxWx1) / params.temperature
    if params.top_k:
        weights_BxWxV = top_k_filter(weights_BxWxV, params.top_k)
    if params.top_p < 1:
        weights_BxWxV = top_p_filter(weights_BxWxV, params.top_p)
    noise_BxWxV = _noise(state, logs_BxWxV.shape[1:])
    # Gumbel-max: the index of the largest sum is a sample; `argmax` is slow over a
    # vocabulary.
    _, sampled_BxWx1 = top_k(weights_BxWxV + noise_BxWxV, 1)
    if state.prefixes_BxP is None:
        return sampled_BxWx1[..., 0]
    forced_Bx1 = forced_tokens(state.prefixes_BxP, state.position, pad=ids.pad)[:, None]
    return jnp.where(forced_Bx1 == ids.pad, sampled_BxWx1[..., 0], forced_Bx1)


def _noise(state: SampleState, shape: tuple[int, ...]) -> jax.Array:
    """Returns Gumbel noise [B, W, V], a function of sentence, sample and position."""
    samples, vocabulary = shape
    keys_B = jax.random.wrap_key_data(state.keys_BxK)

    def sample_noise(key: jax.Array, number: jax.Array) -> jax.Array:
        key = jax.random.fold_in(jax.random.fold_in(key, number), state.position)
        # The 23 bits of the default mode halve how often a token of 1e-7 is drawn, and
        # never draw one of 3e-8.
        return jax.random.gumbel(key, (vocabulary,), jnp.float32, mode="high")

    row_noise = jax.vmap(sample_noise, in_axes=(None, 0))
    batch_noise = jax.vmap(row_noise, in_axes=(0, None))
    return batch_noise(keys_B, jnp.arange(samples, dtype=jnp.uint32))


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
