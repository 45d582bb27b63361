"""Length limits and the length penalty of a search."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.static_params import SearchParams
from t2t_jax.types import Array

_MAX_INT32 = 2**31 - 1
_BITS = 40  # of the fraction of a ratio, in four digits


def length_penalty(
    lengths: Array, alpha: float, *, normalization: str = "paper"
) -> jax.Array:
    """Computes the divisor of log-probabilities, `((5 + n) / 6) ** alpha`.

    1 for a single token. It grows with n (for alpha > 0), so a longer hypothesis may
    have a lower probability and still win.

    Paper: section 6.1, by way of its reference [38] (Wu et al., equation 14).

    Departs: `power` is `n ** alpha`, with which alpha 1 is the mean over the tokens.

    Args:
      lengths: n of any shape, decoded tokens, the eos included.
      alpha: at least 0.
      normalization: "paper" or "power".

    Example:
      >>> length_penalty(jnp.array([1, 7, 19]), 0.5).tolist()
      [1.0, 1.414..., 2.0]
      >>> length_penalty(jnp.array([1, 4, 9]), 0.5, normalization="power").tolist()
      [1.0, 2.0, 3.0]
    """
    if normalization == "power":
        # A row of only pad has the limit 0: its divisor is 1, not 0.
        return jnp.maximum(jnp.asarray(lengths, jnp.float32), 1.0) ** alpha
    return ((5.0 + jnp.asarray(lengths, jnp.float32)) / 6.0) ** alpha


def penalty_of(params: SearchParams | DecodingConfig, lengths: Array) -> jax.Array:
    """Returns the divisors of the log-probabilities of outputs of these lengths."""
    normalization = params.length_normalization
    return length_penalty(lengths, params.length_penalty, normalization=normalization)


def per_sentence_limits(
    source_BxS: Array,
    search_params: SearchParams,
    *,
    max_extra_tokens: int,
    max_length: int,
) -> jax.Array:
    """Computes the maximum tokens of each output, the eos included: [B] int32.

    The limit is the number of subwords (tokens other than pad and eos) plus
    `max_extra_tokens`, at least 1 and at most `max_length`. A row of only pad is not a
    sentence: its limit is 0.

    Departs: with a `max_length_ratio` above 0 the limit is also at most so many times
    the subwords and their eos, rounded up.

    Paper: section 6.1, "maximum output length ... to input length + 50".

    Example:
      >>> from t2t_jax.decoding.search.static_params import BeamParams
      >>> source = jnp.array([[5, 6, 7, 2], [5, 2, 0, 0], [0, 0, 0, 0]])
      >>> limits = per_sentence_limits(
      ...     source, BeamParams(), max_extra_tokens=2, max_length=4
      ... )
      >>> limits.tolist()
      [4, 3, 0]
    """
    source_BxS, ids = jnp.asarray(source_BxS), search_params.ids
    max_length_ratio = search_params.max_length_ratio
    real_BxS = source_BxS != ids.pad
    lengths_B = jnp.sum(real_BxS & (source_BxS != ids.eos), axis=-1, dtype=jnp.int32)
    limits_B = jnp.clip(lengths_B + max_extra_tokens, 1, max_length)
    # At a ratio of max_extra_tokens + 1 or more, the other limit is the smaller one.
    if 0 < max_length_ratio < max_extra_tokens + 1:
        by_ratio_B = _times_rounded_up(lengths_B + 1, max_length_ratio)
        limits_B = jnp.minimum(limits_B, jnp.maximum(by_ratio_B, 1))
    return jnp.where(jnp.any(real_BxS, axis=-1), limits_B, 0)


def _times_rounded_up(tokens_B: jax.Array, ratio: float) -> jax.Array:
    """Computes ceil(ratio * tokens - 1e-6) in int32, for up to 1,000,001 tokens.

    float32 rounds products of long sources, so the fraction of the ratio is multiplied
    digit by digit, of 10 bits each. (Without a table, as S may be symbolic.) Products
    above 2^30 may come out lower, and remain above 2^29.
    """
    whole, fraction = divmod(round(ratio * 2**_BITS), 2**_BITS)
    tokens_B = jnp.minimum(tokens_B, _MAX_INT32 // (whole + 1))
    carry_B = jnp.full_like(tokens_B, -round(1e-6 * 2**_BITS))
    for shift in range(0, _BITS, 10):
        carry_B = (tokens_B * (fraction >> shift & 1023) + carry_B) >> 10
    product_B: jax.Array = tokens_B * whole + carry_B + 1
    return product_B
