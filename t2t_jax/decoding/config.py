"""Configuration of decoding, section 6.1 of the paper. Standard library only."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, TypeAlias

from t2t_jax.errors import ConfigError, choices_of, one_of


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

    beam_size: int = 4
    length_penalty: float = 0.6
    length_normalization: str = one_of("paper", "power")
    beam_rule: str = one_of("fixed", "shrinking")
    max_extra_tokens: int = 50
    max_length_ratio: float = 0.0
    tokens_per_batch: int = 4096
    max_source_length: int = 1024
    segment: str = one_of("auto", "sentences", "lines")
    min_tokens: int = 1
    allow_unk: bool = True
    constraint: str = one_of("none", "tree")
    compute_dtype: str = one_of("auto", "float32", "bfloat16")
    n_best: int = 1
    mbr: str = one_of("none", "chrf")
    shortlist: str = ""
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    attention_layer: int = -1

    def __post_init__(self) -> None:
        problems = broken_rules(vars(self), section="decoding.")
        if problems := problems or self._broken_combinations():
            raise ConfigError(problems)

    def _broken_combinations(self) -> list[str]:
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
        return [message for message, holds in rules.items() if not holds]

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


def broken_rules(values: Mapping[str, Any], *, section: str = "") -> list[str]:
    """Returns a message for each setting of a search that breaks its rule.

    Args:
      values: the settings by name; what has no rule is not checked.
      section: `decoding.` for the keys of a configuration, which are plain Python
        values and have upper limits too.

    Example:
      >>> broken_rules({"beam_size": 0, "other": None})
      ['beam_size=0 must be a whole number of at least 1. Change beam_size.']
    """
    problems = []
    for name, value in values.items():
        rule, holds = _RULES.get(name, ("", lambda _: True))
        is_valid = holds(value)
        if section:
            is_valid = is_valid and isinstance(value, int | float | str)
            if is_valid and value > (most := _MAX_VALUES.get(name, value)):
                is_valid, rule = False, f"must be at most {most:,}"
        if not is_valid:
            key = f"{section}{name}"
            change = f"Change {'config.' if section else ''}{key}."
            problems.append(f"{key}={value!r} {rule}. {change}")
    return problems


def _is_whole(value: Any, *, least: float = -math.inf) -> bool:
    return _is_number(value, least=least) and isinstance(value, Integral)


def _is_number(value: Any, *, least: float = -math.inf) -> bool:
    # written so that NaN, which compares as false, is refused as well
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and least <= value < math.inf


_Rule: TypeAlias = tuple[str, Callable[[Any], Any]]


def _whole(least: int) -> _Rule:
    rule = f"must be a whole number of at least {least}"
    return rule, partial(_is_whole, least=least)


def _are_ids(value: Any) -> bool:
    is_id = partial(_is_whole, least=0)
    return isinstance(value, tuple) and all(map(is_id, value))


def _finite(example: str) -> _Rule:
    rule = f"must be a finite number of at least 0 ({example})"
    return rule, partial(_is_number, least=0)


# Larger values would not fit any machine's memory; a seed is one of 32 bits.
_MAX_VALUES = {
    **dict.fromkeys(("beam_size", "n_best"), 1_000),
    **dict.fromkeys(("max_extra_tokens", "max_source_length", "min_tokens"), 1_000_000),
    **{"tokens_per_batch": 100_000_000, "seed": 2**32 - 1},
}

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("max_extra_tokens", "min_tokens", "top_k", "seed"), _whole(0)),
    **dict.fromkeys(("beam_size", "n_best", "num_samples", "max_length"), _whole(1)),
    "tokens_per_batch": _whole(1),
    "max_source_length": _whole(2),  # one subword and its eos
    **{
        name: (f"is not known; known are {', '.join(map(repr, known))}", known.count)
        for name, known in choices_of(DecodingConfig).items()
    },
    **dict.fromkeys(
        ("allow_unk", "sample"),
        ("must be true or false", lambda value: isinstance(value, bool)),
    ),
    "forbidden": ("must be a tuple of whole numbers of at least 0", _are_ids),
    "ids": (
        "must be whole numbers of at least 0, as BeamParams().ids._replace(unk=5)",
        lambda value: _are_ids(value) and hasattr(value, "eos"),
    ),
    "attention_layer": ("must be a whole number", _is_whole),
    "length_penalty": _finite("0.6 in the paper"),
    "max_length_ratio": _finite("0 for no limit"),
    "temperature": (
        "must be a finite number of at least 1e-30 (for the most probable token each "
        "time, leave sampling off and set beam_size=1)",
        partial(_is_number, least=1e-30),
    ),
    "top_p": (
        "must be a number above 0 and at most 1",
        lambda value: _is_number(value) and 0 < value <= 1,
    ),
}
