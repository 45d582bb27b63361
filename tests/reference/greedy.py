"""Greedy decoding: the most probable token at every position."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.checks import validated_max_length
from t2t_jax.decoding.search.length_penalty import per_sentence_limits
from t2t_jax.decoding.search.static_params import (
    DEFAULT_IDS,
    BeamParams,
    SpecialIds,
)
from t2t_jax.types import Array, PyTree, StepModel


class GreedyResult(NamedTuple):
    """One output per sentence.

    Attributes:
      tokens_BxT: [B, T] int32, the eos included, then pad.
      log_probabilities_B: [B] float32, summed over the tokens.
      finished_B: [B] bool, whether the output ended in eos; if not, it was truncated.
    """

    tokens_BxT: jax.Array
    log_probabilities_B: jax.Array
    finished_B: jax.Array


class _State(NamedTuple):
    position: jax.Array
    tokens_BxT: jax.Array
    log_probabilities_B: jax.Array
    finished_B: jax.Array
    last_tokens_B: jax.Array
    cache: PyTree


def greedy_search(
    model: StepModel,
    source_BxS: Array,
    *,
    max_extra_tokens: int = 50,
    max_length: int | None = None,
    ids: SpecialIds = DEFAULT_IDS,
) -> GreedyResult:
    """Generates the most probable token at each position until eos.

    Equal to `beam_search` with a beam of 1 and `length_penalty=0`, without its
    bookkeeping. Pad and bos are never generated; ties go to the lower token. Pure,
    and safe under `jax.jit` and `jax.vmap`; all keyword arguments are static.

    Departs: section 6.1 decodes with a beam of 4.

    Args:
      source_BxS: [B, S] int tokens, pad after the end; the eos at the end is optional.
      max_extra_tokens: maximum length of an output beyond the subwords of its source
        (pad and eos not counted).
      max_length: T, maximum length of all outputs; None means S + `max_extra_tokens`.
      ids: pad, bos and eos of the model.

    Raises:
      UserError: an argument is out of range or the source is not [B, S].

    Example:
      A model that copies its source:

      >>> class Copier(NamedTuple):
      ...     def encode(self, source_BxS):
      ...         return source_BxS
      ...     def init_cache(self, memory, num_beams, length):
      ...         return ()
      ...     def step(self, tokens_BxW, memory, cache, position):
      ...         return jax.nn.one_hot(memory[:, position], 9)[:, None], cache
      ...     def reorder(self, cache, parents_BxW):
      ...         return cache
      ...     def grow(self, cache, length):
      ...         return cache
      >>> greedy_search(Copier(), jnp.array([[7, 5, 2, 0]])).tokens_BxT[0, :5].tolist()
      [7, 5, 2, 0, 0]
    """
    source_BxS = jnp.asarray(source_BxS)
    params, extra = BeamParams(ids=ids), max_extra_tokens
    max_length = validated_max_length(
        source_BxS, None, params, max_extra_tokens=extra, max_length=max_length
    )
    memory = model.encode(source_BxS)
    limits_B = per_sentence_limits(
        source_BxS, params, max_extra_tokens=extra, max_length=max_length
    )

    def is_open(state: _State) -> jax.Array:
        return ~state.finished_B & (state.position < limits_B)

    def step(state: _State) -> _State:
        logits_Bx1xV, cache = model.step(
            state.last_tokens_B[:, None], memory, state.cache, state.position
        )
        best_B, gain_B = _best_token(jnp.asarray(logits_Bx1xV)[:, 0], ids=ids)
        tokens_B = jnp.where(is_open(state), best_B, ids.pad)
        gain_B = jnp.where(is_open(state), gain_B, 0.0)
        return _State(
            position=state.position + 1,
            tokens_BxT=state.tokens_BxT.at[:, state.position].set(tokens_B),
            log_probabilities_B=state.log_probabilities_B + gain_B,
            finished_B=state.finished_B | (tokens_B == ids.eos),
            last_tokens_B=tokens_B,
            cache=cache,
        )

    cache = model.init_cache(memory, 1, max_length)
    rows = source_BxS.shape[0]
    state = _State(
        position=jnp.zeros((), jnp.int32),
        tokens_BxT=jnp.full((rows, max_length), ids.pad, jnp.int32),
        log_probabilities_B=jnp.zeros((rows,), jnp.float32),
        finished_B=jnp.zeros((rows,), bool),
        last_tokens_B=jnp.full((rows,), ids.bos, jnp.int32),
        cache=cache,
    )
    state = jax.lax.while_loop(lambda state: jnp.any(is_open(state)), step, state)
    return GreedyResult(state.tokens_BxT, state.log_probabilities_B, state.finished_B)


def _best_token(
    logits_BxV: jax.Array, *, ids: SpecialIds
) -> tuple[jax.Array, jax.Array]:
    """Returns the best tokens except pad and bos, and their log-probabilities."""
    logits_BxV = jnp.asarray(logits_BxV, jnp.float32)
    allowed_BxV = logits_BxV.at[:, jnp.array([ids.pad, ids.bos])].set(-jnp.inf)
    gain_B = jnp.max(allowed_BxV, axis=-1) - jax.nn.logsumexp(logits_BxV, axis=-1)
    return jnp.argmax(allowed_BxV, axis=-1), gain_B  # the first of equal ones
