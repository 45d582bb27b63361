"""The knobs of decoding, section 6.1 of the paper. Standard library only."""

from __future__ import annotations

import dataclasses

from t2t_jax.errors import Problems


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How a trained model is asked for translations.

    Paper: section 6.1 (beam of 4, alpha of 0.6, output at most input + 50).

    Attributes:
      beam_size: hypotheses alive per sentence, W. With 1 and `length_penalty=0` the
        search is greedy.
      length_penalty: the paper's alpha, at least 0; a log-probability is divided by
        `((5 + n) / 6) ** alpha`. 0 compares bare log-probabilities.
      max_extra_tokens: a translation holds at most this many tokens more than its
        source holds subwords.
      tokens_per_batch: bound, on each device, on its rows of a batch times the longest
        output they may reach (source slots + `max_extra_tokens`). Each slot is kept
        once per beam, so this bounds the decoder's cache on a device whatever the
        lengths of the sentences; n devices decode n times as many rows at once.
      max_source_length: longest source, in subwords and with its eos; what is longer
        is cut there.

    Raises:
      ConfigError: a value breaks its rule; all broken rules come together.

    Example:
      >>> DecodingConfig().beam_size
      4
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    max_extra_tokens: int = 50
    tokens_per_batch: int = 4096
    max_source_length: int = 1024

    def __post_init__(self) -> None:
        problems = Problems()
        for name, least in _LEAST.items():
            value = getattr(self, name)
            problems.require(
                isinstance(value, int)
                and not isinstance(value, bool)
                # written so that NaN, which compares as false, is refused as well
                and value >= least,
                f"decoding.{name}={value!r} must be a whole number of at least "
                f"{least}. Change config.decoding.{name}.",
            )
        problems.require(
            _is_number(self.length_penalty) and 0 <= self.length_penalty < _INFINITY,
            f"decoding.length_penalty={self.length_penalty!r} must be a finite number "
            "of at least 0 (0.6 in the paper). Change config.decoding.length_penalty.",
        )
        if not problems.found:
            longest = self.max_source_length + self.max_extra_tokens
            problems.require(
                self.tokens_per_batch >= longest,
                f"decoding.tokens_per_batch={self.tokens_per_batch} must hold one "
                f"longest output, max_source_length + max_extra_tokens = {longest}. "
                "Raise config.decoding.tokens_per_batch or lower "
                "config.decoding.max_source_length.",
            )
        problems.raise_if_any()


_INFINITY = float("inf")
# A source of 2 slots is one subword and its eos.
_LEAST = {
    "beam_size": 1,
    "max_extra_tokens": 0,
    "tokens_per_batch": 1,
    "max_source_length": 2,
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
