"""Special tokens, length limits and the length penalty of a search."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.data.vocabulary.vocabulary import BOS, EOS, PAD
from t2t_jax.types import Array


class SpecialIds(NamedTuple):
    """The special token ids of a model."""

    pad: int = PAD
    bos: int = BOS
    eos: int = EOS


DEFAULT_IDS = SpecialIds()
"""The ids of the vocabularies that t2t_jax builds."""


def length_penalty(lengths: Array, alpha: float) -> jax.Array:
    """Computes the divisor of log-probabilities, `((5 + n) / 6) ** alpha`.

    1 for a single token. It grows with n (for alpha > 0), so a longer hypothesis may
    have a lower probability and still win.

    Paper: section 6.1, by way of its reference [38] (Wu et al., equation 14).

    Args:
      lengths: n of any shape, decoded tokens, the eos included.
      alpha: at least 0.

    Example:
      >>> length_penalty(jnp.array([1, 7, 19]), 0.5).tolist()
      [1.0, 1.414..., 2.0]
    """
    return ((5.0 + jnp.asarray(lengths, jnp.float32)) / 6.0) ** alpha


def per_sentence_limits(
    source_BxS: Array, *, max_extra_tokens: int, max_length: int, ids: SpecialIds
) -> jax.Array:
    """Computes the maximum tokens of each output, the eos included: [B] int32.

    The limit is the number of subwords (tokens other than pad and eos) plus
    `max_extra_tokens`, at least 1 and at most `max_length`. A row of only pad is not a
    sentence: its limit is 0.

    Paper: section 6.1, "maximum output length ... to input length + 50".

    Example:
      >>> source = jnp.array([[5, 6, 7, 2], [5, 2, 0, 0], [0, 0, 0, 0]])
      >>> limits = per_sentence_limits(
      ...     source, max_extra_tokens=2, max_length=4, ids=SpecialIds()
      ... )
      >>> limits.tolist()
      [4, 3, 0]
    """
    source_BxS = jnp.asarray(source_BxS)
    real_BxS = source_BxS != ids.pad
    lengths_B = jnp.sum(real_BxS & (source_BxS != ids.eos), axis=-1, dtype=jnp.int32)
    limits_B = jnp.clip(lengths_B + max_extra_tokens, 1, max_length)
    return jnp.where(jnp.any(real_BxS, axis=-1), limits_B, 0)
