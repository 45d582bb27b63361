"""Greedy decoding: the most probable token at every position.

It has the limits of `beam_search`, and nothing of its bookkeeping.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.checks import validated_max_length
from t2t_jax.decoding.search.length_penalty import per_sentence_limits
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.types import BOS, EOS, PAD


class GreedyResult(NamedTuple):
    """One output per sentence, its eos included, then pad; it may be cut before."""

    tokens_BxT: jax.Array
    log_probabilities_B: jax.Array
    finished_B: jax.Array


def greedy_search(model, source_BxS, *, max_extra_tokens=50, max_length=None):
    """Says the most probable token but pad and bos, until eos or the limit.

    Equal to `beam_search` with a beam of 1 and `length_penalty=0`. Ties go to the lower
    token. Both keyword arguments are static.
    """
    source_BxS, params = jnp.asarray(source_BxS), BeamParams()
    extra = {"max_extra_tokens": max_extra_tokens}
    length = validated_max_length(
        source_BxS, None, params, max_length=max_length, **extra
    )
    limits_B = per_sentence_limits(source_BxS, params, max_length=length, **extra)
    memory = model.encode(source_BxS)

    def step(state, position):
        last_B, total_B, is_open_B, cache = state
        is_open_B &= position < limits_B
        logits_Bx1xV, cache = model.step(last_B[:, None], memory, cache, position)
        logits_BxV = jnp.asarray(logits_Bx1xV, jnp.float32)[:, 0]
        allowed_BxV = logits_BxV.at[:, jnp.array([PAD, BOS])].set(-jnp.inf)
        gain_B = allowed_BxV.max(axis=-1) - jax.nn.logsumexp(logits_BxV, axis=-1)
        said_B = jnp.where(is_open_B, allowed_BxV.argmax(axis=-1), PAD)
        total_B += jnp.where(is_open_B, gain_B, 0.0)
        return (said_B, total_B, is_open_B & (said_B != EOS), cache), said_B

    rows = source_BxS.shape[0]
    cache = model.init_cache(memory, 1, length)
    state = jnp.full(rows, BOS), jnp.zeros(rows), jnp.ones(rows, bool), cache
    (_, total_B, _, _), tokens_TxB = jax.lax.scan(step, state, jnp.arange(length))
    return GreedyResult(tokens_TxB.T, total_B, (tokens_TxB == EOS).any(axis=0))
