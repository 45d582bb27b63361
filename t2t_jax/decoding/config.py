"""Configuration of decoding, section 6.1 of the paper. Standard library only."""

from __future__ import annotations

import dataclasses

from t2t_jax.errors import ErrorCollector


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How a trained model translates.

    Paper: section 6.1 (beam of 4, alpha of 0.6, output at most input + 50).

    Attributes:
      beam_size (hypotheses): Beam width, at most 1,000. 1 with a `length_penalty` of 0
        is greedy search.
      length_penalty (exponent): Alpha of the paper, at least 0; log-probabilities are
        divided by `((5 + n) / 6) ** alpha`. 0 compares plain log-probabilities.
      max_extra_tokens (tokens): A translation has at most this many tokens more than
        its source.
      tokens_per_batch (tokens): Batch size of decoding for each device: rows times the
        longest output they may reach (source length + `max_extra_tokens`). It bounds
        the decoder's cache, which holds each slot once per hypothesis. A single device
        has two such batches in flight.
      max_source_length (tokens): Longest source, end of sentence included. A longer
        line is split at the ends of sentences or clauses, and its parts are translated
        separately.
      min_tokens (tokens): A translation has at least this many tokens before its end
        of sentence, unless its maximum is lower.
      n_best (translations): Translations per line, at most `beam_size`; the number of
        samples with `sample`, at most 1,000.
      sample: Whether to sample tokens from the model's distribution instead of
        searching; `beam_size` is ignored then.
      temperature (ratio): Above 0; the logits are divided by it before sampling.
      top_k (tokens): Sample among this many of the most probable tokens; 0 for all.
      top_p (probability): Above 0 and at most 1; sample among the fewest most probable
        tokens whose probabilities add up to this, after `temperature` and `top_k`.
      seed (random seed): Seed of the samples. Those of a line depend on the seed and
        the number of the line only.
      attention_layer (layer index): Decoder layer whose attention gives the alignments,
        from 0; negative numbers count from the last layer.

    Raises:
      ConfigError: values are invalid; the message lists all.

    Example:
      >>> DecodingConfig().beam_size
      4
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    max_extra_tokens: int = 50
    tokens_per_batch: int = 4096
    max_source_length: int = 1024
    min_tokens: int = 0
    n_best: int = 1
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    attention_layer: int = -1

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        for name, least in _MIN_VALUES.items():
            value = getattr(self, name)
            problems.check(
                isinstance(value, int)
                and not isinstance(value, bool)
                # written so that NaN, which compares as false, is refused as well
                and value >= least,
                f"decoding.{name}={value!r} must be a whole number of at least "
                f"{least}. Change config.decoding.{name}.",
            )
            if name in _MAX_VALUES and isinstance(value, int):
                problems.limit(f"decoding.{name}", value, _MAX_VALUES[name])
        problems.check(
            _is_number(self.length_penalty) and 0 <= self.length_penalty < _INFINITY,
            f"decoding.length_penalty={self.length_penalty!r} must be a finite number "
            "of at least 0 (0.6 in the paper). Change config.decoding.length_penalty.",
        )
        self._check_sampling(problems)
        if not problems.messages:
            self._check_combinations(problems)
        problems.raise_if_any()

    def _check_sampling(self, problems: ErrorCollector) -> None:
        problems.check(
            isinstance(self.sample, bool),
            f"decoding.sample={self.sample!r} must be true or false. Change "
            "config.decoding.sample.",
        )
        problems.check(
            _is_number(self.temperature) and 0 < self.temperature < _INFINITY,
            f"decoding.temperature={self.temperature!r} must be a finite number above "
            "0. For the most probable token each time, leave decoding.sample off and "
            "set decoding.beam_size=1.",
        )
        problems.check(
            _is_number(self.top_p) and 0 < self.top_p <= 1,
            f"decoding.top_p={self.top_p!r} must be above 0 and at most 1. Change "
            "config.decoding.top_p.",
        )
        problems.check(
            not isinstance(self.seed, int) or self.seed < 2**32,
            f"decoding.seed={self.seed!r} must be below 2^32. Change "
            "config.decoding.seed.",
        )
        layer = self.attention_layer
        problems.check(
            isinstance(layer, int) and not isinstance(layer, bool),
            f"decoding.attention_layer={layer!r} must be a whole number. Change "
            "config.decoding.attention_layer.",
        )

    def _check_combinations(self, problems: ErrorCollector) -> None:
        longest = self.max_source_length + self.max_extra_tokens
        problems.check(
            self.tokens_per_batch >= longest,
            f"decoding.tokens_per_batch={self.tokens_per_batch} must hold one "
            f"longest output, max_source_length + max_extra_tokens = {longest}. "
            "Raise config.decoding.tokens_per_batch or lower "
            "config.decoding.max_source_length.",
        )
        problems.check(
            self.sample or self.n_best <= self.beam_size,
            f"decoding.n_best={self.n_best} must be at most decoding.beam_size="
            f"{self.beam_size}. Lower one or raise the other, or set decoding.sample.",
        )


_INFINITY = float("inf")
# A source of 2 slots is one subword and its eos.
_MIN_VALUES = {
    "beam_size": 1,
    "max_extra_tokens": 0,
    "tokens_per_batch": 1,
    "max_source_length": 2,
    "min_tokens": 0,
    "n_best": 1,
    "top_k": 0,
    "seed": 0,
}

# Larger values would not fit any machine's memory.
_MAX_VALUES = {
    "beam_size": 1_000,
    "n_best": 1_000,
    "max_extra_tokens": 1_000_000,
    "tokens_per_batch": 100_000_000,
    "max_source_length": 1_000_000,
    "min_tokens": 1_000_000,
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
