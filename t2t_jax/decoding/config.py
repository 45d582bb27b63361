"""Configuration of decoding, section 6.1 of the paper. Standard library only."""

from __future__ import annotations

import dataclasses
import math

from t2t_jax.errors import ErrorCollector

LENGTH_NORMALIZATIONS = ("paper", "power")
"""Values of `decoding.length_normalization`."""

BEAM_RULES = ("fixed", "shrinking")
"""Values of `decoding.beam_rule`."""

CONSTRAINTS = ("none", "tree")
"""Values of `decoding.constraint`."""

COMPUTE_DTYPES = ("auto", "float32", "bfloat16")
"""Values of `decoding.compute_dtype`."""


SEGMENTS = ("auto", "sentences", "lines")
"""Values of `decoding.segment`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How a trained model translates.

    Paper: section 6.1 (beam of 4, alpha of 0.6, output at most input + 50).

    Attributes:
      beam_size (hypotheses): Beam width, at most 1,000. 1 with a `length_penalty` of 0
        is greedy search.
      length_penalty (exponent): Alpha of the paper, at least 0; log-probabilities are
        divided by `((5 + n) / 6) ** alpha`. 0 compares plain log-probabilities.
      length_normalization: What is raised to `length_penalty`, of an output of n
        tokens: "paper", (5 + n) / 6, or "power", n itself, as in Marian, Hugging Face
        Transformers and CTranslate2.
      beam_rule: How many hypotheses live on: "fixed", always `beam_size`, until none
        can overtake the finished ones; or "shrinking", as many as are not yet finished,
        until all of `beam_size` are, as in Marian.
      max_extra_tokens (tokens): A translation has at most this many tokens more than
        its source.
      max_length_ratio (target / source tokens): A translation has at most this many
        times the tokens of its source, rounded up, the end of sentence counted on both
        sides; 0 for no such limit. `max_extra_tokens` holds as well.
      tokens_per_batch (tokens): Batch size of decoding for each device: rows times the
        longest output they may reach (source length + `max_extra_tokens`), or the
        source, if that is longer. It bounds the decoder's cache, which holds each slot
        once per hypothesis. A single device has two such batches in flight. Batches
        whose search could hold more than a quarter of the device's memory are cut.
      max_source_length (tokens): Longest source, end of sentence included. A longer
        line is split at the ends of sentences or clauses, and its parts are translated
        separately.
      segment: Which lines are translated sentence by sentence: "auto", those with more
        sentences or subwords than 999 of 1,000 lines of the training text, but for
        lines with a forced prefix or terms, and for trees; "sentences", all; or
        "lines", none.
      min_tokens (tokens): A translation has at least this many tokens before its end
        of sentence, unless its maximum is lower. 0, as in the paper, allows empty ones.
      allow_unk: Whether the unknown token may be generated; a forced prefix may hold it
        anyway.
      constraint: What outputs must be: "none", anything; or "tree", one balanced tree
        over exactly the words of the source, of a model with a vocabulary of the
        symbols of trees.
      compute_dtype: What the search computes in: "auto", as the model
        (`model.compute_dtype`), "float32", or "bfloat16", also for a model that was
        trained in float32. It is faster where the device multiplies bfloat16: GPUs,
        TPUs, CPUs with AVX512_BF16. Scores of given pairs and of single tokens are
        computed in the model's type.
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
    length_normalization: str = "paper"
    beam_rule: str = "fixed"
    max_extra_tokens: int = 50
    max_length_ratio: float = 0.0
    tokens_per_batch: int = 4096
    max_source_length: int = 1024
    segment: str = "auto"
    min_tokens: int = 1
    allow_unk: bool = True
    constraint: str = "none"
    compute_dtype: str = "auto"
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
        self._check_rules(problems)
        self._check_sampling(problems)
        if not problems.messages:
            self._check_combinations(problems)
        problems.raise_if_any()

    def _check_rules(self, problems: ErrorCollector) -> None:
        words = {
            "length_normalization": LENGTH_NORMALIZATIONS,
            "beam_rule": BEAM_RULES,
            "constraint": CONSTRAINTS,
            "compute_dtype": COMPUTE_DTYPES,
            "segment": SEGMENTS,
        }
        for name, known in words.items():
            problems.check(
                getattr(self, name) in known,
                f"decoding.{name}={getattr(self, name)!r} is not known; known are "
                f"{', '.join(map(repr, known))}. Change config.decoding.{name}.",
            )
        problems.check(
            _is_number(self.max_length_ratio)
            and 0 <= self.max_length_ratio < _INFINITY,
            f"decoding.max_length_ratio={self.max_length_ratio!r} must be a finite "
            "number of at least 0 (0 for no limit). Change "
            "config.decoding.max_length_ratio.",
        )
        problems.check(
            isinstance(self.allow_unk, bool),
            f"decoding.allow_unk={self.allow_unk!r} must be true or false. Change "
            "config.decoding.allow_unk.",
        )

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
        # With a max_length_ratio below 1, the longest source is longer.
        longest = max(self.max_source_length, self.longest_output())
        is_source = longest > self.longest_output()
        formula = "max_source_length" if is_source else self.longest_output_formula()
        problems.check(
            self.tokens_per_batch >= longest,
            f"decoding.tokens_per_batch={self.tokens_per_batch} must hold one "
            f"longest {'source' if is_source else 'output'}, {formula} = {longest}. "
            "Raise config.decoding.tokens_per_batch or lower "
            "config.decoding.max_source_length.",
        )
        problems.check(
            self.sample or self.n_best <= self.beam_size,
            f"decoding.n_best={self.n_best} must be at most decoding.beam_size="
            f"{self.beam_size}. Lower one or raise the other, or set decoding.sample.",
        )

        problems.check(
            self.constraint == "none" or not self.sample,
            f"decoding.constraint={self.constraint} restricts a beam search and "
            "decoding.sample draws every token. Unset config.decoding.constraint or "
            "config.decoding.sample.",
        )
        if self.constraint == "tree":
            problems.check(
                self.max_extra_tokens >= 3
                and not (self.max_length_ratio or self.min_tokens > 1),
                "decoding.constraint=tree needs room for two brackets and the end, and "
                "no other limits: decoding.max_extra_tokens="
                f"{self.max_extra_tokens} of at least 3, decoding.max_length_ratio="
                f"{self.max_length_ratio:g} of 0 and decoding.min_tokens="
                f"{self.min_tokens} of 0 or 1. Change these keys.",
            )

    def longest_output(self, source_tokens: int | None = None) -> int:
        """Returns the most tokens of an output of a source of so many tokens.

        Args:
          source_tokens: with the eos; None means `max_source_length`.

        Example:
          >>> DecodingConfig().longest_output(10)
          60
          >>> DecodingConfig(max_length_ratio=3).longest_output(10)
          30
        """
        return longest_output(
            self.max_source_length if source_tokens is None else source_tokens,
            max_extra_tokens=self.max_extra_tokens,
            max_length_ratio=self.max_length_ratio,
        )

    def longest_output_formula(self, *, prefix: str = "") -> str:
        """Returns how the longest output follows from the keys, for messages."""
        if self.max_length_ratio and self.longest_output() < (
            self.max_source_length + self.max_extra_tokens
        ):
            return f"{prefix}max_source_length * {prefix}max_length_ratio"
        return f"{prefix}max_source_length + {prefix}max_extra_tokens"


def longest_output(
    source_tokens: int, *, max_extra_tokens: int, max_length_ratio: float
) -> int:
    """Returns the most tokens of an output of a source of so many tokens.

    Args:
      source_tokens: with the eos.
      max_length_ratio: 0 for no limit.

    Example:
      >>> longest_output(7, max_extra_tokens=50, max_length_ratio=1.5)
      11
    """
    longest = source_tokens + max_extra_tokens
    if max_length_ratio:
        # 1.1 * 10 is a little more than 11 in binary.
        longest = min(longest, math.ceil(max_length_ratio * source_tokens - 1e-6))
    return max(1, longest)


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
