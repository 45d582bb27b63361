"""What searches and samplers go by: numbers that are static under `jax.jit`."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS, SpecialIds
from t2t_jax.errors import ErrorCollector, UserError


@dataclasses.dataclass(frozen=True)
class BeamParams:
    """What a beam search goes by.

    Attributes:
      beam_size: hypotheses alive per sentence, W. A beam of 1 is greedy: there an eos
        that is only the second best continuation ends nothing.
      length_penalty: the paper's alpha, at least 0.
      n_best: outputs asked for per sentence, at most W.
      ids: the special tokens.
      min_tokens: an output holds at least as many tokens before its eos.

    Raises:
      UserError: a value breaks its rule.
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    n_best: int = 1
    ids: SpecialIds = DEFAULT_IDS
    min_tokens: int = 0

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        problems.check(
            self.beam_size >= 1,
            f"beam_size={self.beam_size} must be at least 1. Raise beam_size.",
        )
        problems.check(
            1 <= self.n_best <= max(1, self.beam_size),
            f"n_best={self.n_best} must lie between 1 and beam_size={self.beam_size}. "
            "Change n_best or raise beam_size.",
        )
        _require_common(self, problems)
        problems.raise_if_any(UserError)


@dataclasses.dataclass(frozen=True)
class SamplingParams:
    """What drawing goes by.

    Departs: the paper draws nothing.

    Attributes:
      num_samples: outputs drawn per sentence, W.
      temperature: above 0; logits are divided by it. Below 1 the probable becomes more
        probable still.
      top_k: tokens to draw among, the most probable; 0: all. Those as probable as the
        k-th are among them too.
      top_p: in (0, 1]; the fewest most probable tokens whose probabilities add up to
        this much are drawn among, after `temperature` and `top_k`.
      length_penalty: the alpha of the scores; nothing is chosen by it.
      ids: the special tokens.
      min_tokens: an output holds at least as many tokens before its eos.

    Raises:
      UserError: a value breaks its rule.
    """

    num_samples: int = 1
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    length_penalty: float = 0.6
    ids: SpecialIds = DEFAULT_IDS
    min_tokens: int = 0

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        problems.check(
            self.num_samples >= 1,
            f"num_samples={self.num_samples} must be at least 1. Raise num_samples.",
        )
        problems.check(
            0 < self.temperature < float("inf"),
            f"temperature={self.temperature} must be a finite number above 0. For the "
            "most probable token each time, search with a beam of 1.",
        )
        problems.check(
            self.top_k >= 0,
            f"top_k={self.top_k} must be at least 0, which is all. Raise top_k.",
        )
        problems.check(
            0 < self.top_p <= 1,
            f"top_p={self.top_p} must be above 0 and at most 1. Change top_p.",
        )
        _require_common(self, problems)
        problems.raise_if_any(UserError)


Rules: TypeAlias = BeamParams | SamplingParams


def params_from_config(config: DecodingConfig) -> Rules:
    """Makes of a configuration what a search, or drawing, goes by.

    Args:
      config: says which of the two, and how.

    Example:
      >>> params_from_config(DecodingConfig(sample=True, n_best=3)).num_samples
      3
    """
    if not config.sample:
        return BeamParams(
            beam_size=config.beam_size,
            length_penalty=config.length_penalty,
            n_best=config.n_best,
            min_tokens=config.min_tokens,
        )
    return SamplingParams(
        num_samples=config.n_best,
        temperature=config.temperature,
        top_k=config.top_k,
        top_p=config.top_p,
        length_penalty=config.length_penalty,
        min_tokens=config.min_tokens,
    )


def _require_common(
    rules: BeamParams | SamplingParams, problems: ErrorCollector
) -> None:
    """Notes what is broken of the rules that both kinds have."""
    problems.check(
        0 <= rules.length_penalty < float("inf"),
        f"length_penalty={rules.length_penalty} must be at least 0, or no search could "
        "know when to stop, and finite. Change length_penalty.",
    )
    problems.check(
        rules.min_tokens >= 0,
        f"min_tokens={rules.min_tokens} must be at least 0. Raise min_tokens.",
    )
