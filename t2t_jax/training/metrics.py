"""Sums that a step returns, and the metrics computed from them.

A metric over several steps is a ratio of sums: means are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import jax

Scalar: TypeAlias = jax.Array | float

_LARGEST_EXPONENT = 700.0  # math.exp overflows a float64 soon after


class Sums(NamedTuple):
    """Sums over one batch; every field is a scalar.

    Attributes:
      loss: smoothed cross entropy, summed over target tokens, in nats.
      nll: cross entropy without smoothing, summed over target tokens, in nats.
      correct: target tokens whose most likely prediction is right.
      slots: token slots of both sides, padding included.
      consistency: divergence between two passes, summed over target tokens, in nats;
        None of one pass.
    """

    loss: Scalar
    nll: Scalar
    correct: Scalar
    target_tokens: Scalar
    source_tokens: Scalar
    slots: Scalar
    consistency: Scalar | None = None


def total(parts: Sequence[Sums]) -> Sums:
    """Adds the sums of several batches, as Python floats.

    The float32 and int32 of the devices would lose small terms, and overflow over a
    long window.
    """
    columns = zip(*(known(part) for part in parts), strict=True)
    return Sums(*(sum(map(float, column)) for column in columns))


def known(sums: Sums) -> tuple[Scalar, ...]:
    """Returns the fields that are not None."""
    return tuple(x for x in sums if x is not None)


def summarise(sums: Sums) -> dict[str, float]:
    """Computes per-token metrics.

    Returns:
      `loss` and `nll` in nats per target token, `perplexity` = exp(nll) per token,
      `accuracy` of the most likely token, `padding_fraction` of all slots; and
      `consistency` in nats per target token, if it was computed.

    Raises:
      ValueError: there are no target tokens.
    """
    tokens = float(sums.target_tokens)
    if tokens == 0:
        raise ValueError(
            "Metrics per token need at least one target token, but there are none. "
            "Check that the corpus has pairs shorter than data.max_length."
        )
    nll = float(sums.nll) / tokens
    real = tokens + float(sums.source_tokens)
    figures = {
        "loss": float(sums.loss) / tokens,
        "nll": nll,
        "perplexity": math.exp(min(nll, _LARGEST_EXPONENT)),
        "accuracy": float(sums.correct) / tokens,
        "padding_fraction": 1.0 - real / float(sums.slots),
    }
    if sums.consistency is not None:
        figures["consistency"] = float(sums.consistency) / tokens
    return figures
