"""Configuration of decoding, section 6.1 of the paper. Standard library only."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from numbers import Integral, Real
from typing import Any

from t2t_jax.errors import ErrorCollector, checked, one_of


def is_whole(value: Any, *, least: float = -math.inf) -> bool:
    """Returns whether a value is a whole number, of any type but bool."""
    return _is_number(value, least=least) and isinstance(value, Integral)


def _is_number(value: Any, *, least: float = -math.inf) -> bool:
    # written so that NaN, which compares as false, is refused as well
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and least <= value < math.inf


def whole(default: int, *, least: int = 0, most: float = math.inf) -> Any:
    """Makes a field for a whole number; more than `most` would not fit any memory."""
    rule = f"be a whole number of at least {least}"
    return checked(default, rule, partial(is_whole, least=least), most=most)


def finite(default: float, example: str) -> Any:
    """Makes a field for a finite number of at least 0."""
    rule = f"be a finite number of at least 0 ({example})"
    return checked(default, rule, partial(_is_number, least=0))


def boolean(default: bool) -> Any:
    """Makes a field for a truth value."""
    return checked(default, "be true or false", lambda value: isinstance(value, bool))


def above_0(default: float) -> Any:
    """Makes a field for a temperature."""
    rule = (
        "be a finite number of at least 1e-30 (for the most probable token each time, "
        "leave sampling off and set beam_size=1)"
    )
    return checked(default, rule, partial(_is_number, least=1e-30))


def share(default: float) -> Any:
    """Makes a field for a probability of samples."""
    rule = "be a number above 0 and at most 1"
    return checked(default, rule, lambda value: _is_number(value) and 0 < value <= 1)


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
        (`model.compute_dtype`), but float32 on CPUs that do not multiply bfloat16;
        "float32"; or "bfloat16", also for a model that was trained in float32. It is
        faster where the device multiplies bfloat16: GPUs, TPUs, CPUs with AVX512_BF16
        or AMX. Scores of given pairs and of single tokens are computed in the model's
        type.
      n_best (translations): Translations per line, at most `beam_size`; with `sample`
        and without `mbr` the number of samples, at most 1,000.
      mbr: Minimum Bayes risk: "chrf" takes, of `beam_size` hypotheses or samples, those
        that are most like all the others, by the mean chrF with each as the reference
        (Eikema and Aziz, arXiv 2005.10283); "none" the most probable.
      shortlist: File of `--mode=shortlist`: for each sentence the search considers only
        the target pieces that are probable translations of its own, and frequent ones,
        over which probabilities are normalized; "" for all pieces, as in the paper.
        Forced prefixes and terms are produced all the same.
      sample: Whether to sample tokens from the model's distribution instead of
        searching; `beam_size` is then the number of samples for `mbr`, else ignored.
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

    beam_size: int = whole(4, least=1, most=1_000)
    length_penalty: float = finite(0.6, "0.6 in the paper")
    length_normalization: str = one_of("paper", "power")
    beam_rule: str = one_of("fixed", "shrinking")
    max_extra_tokens: int = whole(50, most=1_000_000)
    max_length_ratio: float = finite(0.0, "0 for no limit")
    tokens_per_batch: int = whole(4096, least=1, most=100_000_000)
    # At least one subword and its eos.
    max_source_length: int = whole(1024, least=2, most=1_000_000)
    segment: str = one_of("auto", "sentences", "lines")
    min_tokens: int = whole(1, most=1_000_000)
    allow_unk: bool = boolean(True)
    constraint: str = one_of("none", "tree")
    compute_dtype: str = one_of("auto", "float32", "bfloat16")
    n_best: int = whole(1, least=1, most=1_000)
    mbr: str = one_of("none", "chrf")
    shortlist: str = ""
    sample: bool = boolean(False)
    temperature: float = above_0(1.0)
    top_k: int = whole(0)
    top_p: float = share(1.0)
    seed: int = whole(0, most=2**32 - 1)
    attention_layer: int = checked(-1, "be a whole number", is_whole)

    def __post_init__(self) -> None:
        problems = ErrorCollector("decoding", self)
        if not problems.messages:  # They are written as JSON.
            rule = "be a number or a text of Python"
            problems.of(rule, lambda x: isinstance(x, int | float | str), *vars(self))
        if not problems.messages:
            self._check_combinations(problems)
        problems.raise_if_any()

    def _check_combinations(self, problems: ErrorCollector) -> None:
        # With a max_length_ratio below 1, the longest source is longer.
        longest = max(self.max_source_length, self.longest_output())
        is_source = longest > self.longest_output()
        formula = "max_source_length" if is_source else self.longest_output_formula()
        is_free = self.constraint == "none"
        has_room = self.max_extra_tokens >= 3 and self.min_tokens <= 1
        rules = {
            f"decoding.tokens_per_batch={self.tokens_per_batch} must hold one "
            f"longest {'source' if is_source else 'output'}, {formula} = {longest}. "
            "Raise config.decoding.tokens_per_batch or lower "
            "config.decoding.max_source_length.": self.tokens_per_batch >= longest,
            f"decoding.n_best={self.n_best} must be at most decoding.beam_size="
            f"{self.beam_size}. Lower one or raise the other, or set "
            "decoding.sample.": self.n_best <= self.beam_size
            or (self.sample and self.mbr == "none"),
            f"decoding.mbr={self.mbr} chooses among decoding.beam_size hypotheses or "
            "samples, of which there must be at least 2. Raise config.decoding."
            "beam_size.": self.mbr == "none" or self.beam_size > 1,
            f"decoding.constraint={self.constraint} restricts a beam search and "
            "decoding.sample draws every token. Unset config.decoding.constraint or "
            "config.decoding.sample.": is_free or not self.sample,
            f"decoding.shortlist={self.shortlist} is for a beam search without a "
            f"constraint, and decoding.sample={self.sample} and decoding.constraint="
            f"{self.constraint}. Unset config.decoding.shortlist, or change these "
            "keys.": not self.shortlist or (is_free and not self.sample),
            "decoding.constraint=tree needs room for two brackets and the end, and "
            "no other limits: decoding.max_extra_tokens="
            f"{self.max_extra_tokens} of at least 3, decoding.max_length_ratio="
            f"{self.max_length_ratio:g} of 0 and decoding.min_tokens="
            f"{self.min_tokens} of 0 or 1. Change these keys.": is_free
            or (has_room and not self.max_length_ratio),
        }
        for message, holds in rules.items():
            problems.check(holds, message)

    @property
    def num_outputs(self) -> int:
        """Outputs of a search: `n_best`, or those that `mbr` chooses from."""
        return self.n_best if self.mbr == "none" else self.beam_size

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
        if source_tokens is None:
            source_tokens = self.max_source_length
        extra, ratio = self.max_extra_tokens, self.max_length_ratio
        return longest_output(source_tokens, extra, max_length_ratio=ratio)

    def longest_output_formula(self, *, prefix: str = "") -> str:
        """Returns how the longest output follows from the keys, for messages."""
        is_sum = self.longest_output() == self.max_source_length + self.max_extra_tokens
        sign, key = ("+", "max_extra_tokens") if is_sum else ("*", "max_length_ratio")
        return f"{prefix}max_source_length {sign} {prefix}{key}"


def longest_output(
    source_tokens: int, max_extra_tokens: int, *, max_length_ratio: float
) -> int:
    """Returns the most tokens of an output of a source of so many tokens.

    Args:
      source_tokens: with the eos.
      max_length_ratio: 0 for no limit.

    Example:
      >>> longest_output(7, 50, max_length_ratio=1.5)
      11
    """
    longest = source_tokens + max_extra_tokens
    if max_length_ratio:
        # 1.1 * 10 is a little more than 11 in binary.
        longest = math.ceil(min(longest, max_length_ratio * source_tokens - 1e-6))
    return max(1, longest)
