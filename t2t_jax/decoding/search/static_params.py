"""Parameters of beam search and sampling, static under `jax.jit`."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import jax

from t2t_jax.decoding.config import BEAM_RULES, LENGTH_NORMALIZATIONS, DecodingConfig
from t2t_jax.decoding.search.length_penalty import (
    DEFAULT_IDS,
    SpecialIds,
    length_penalty,
)
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.types import Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OutputParams:
    """What beam search and sampling have in common, by keyword only."""

    length_normalization: str = "paper"
    allow_unk: bool = True
    max_length_ratio: float = 0.0


@dataclasses.dataclass(frozen=True)
class BeamParams(_OutputParams):
    """Parameters of a beam search.

    Attributes:
      beam_size: W, live hypotheses per sentence. A beam of 1 is greedy: an eos that is
        only the second best continuation does not end the output.
      beam_rule: one of `BEAM_RULES`; see `beam_search`.
      max_length_ratio: limit of tokens of an output for each of its source, 0 for none.

    Raises:
      UserError: a value is invalid.
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    n_best: int = 1
    ids: SpecialIds = DEFAULT_IDS
    min_tokens: int = 0
    beam_rule: str = dataclasses.field(default="fixed", kw_only=True)

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
        _check_word("beam_rule", self.beam_rule, BEAM_RULES, problems)
        _check_common(self, problems)
        problems.raise_if_any(UserError)


@dataclasses.dataclass(frozen=True)
class SamplingParams(_OutputParams):
    """Parameters of sampling.

    Departs: the paper does not sample.

    Attributes:
      num_samples: W, samples per sentence.
      temperature: above 0; the logits are divided by it. Below 1 sharpens the
        distribution.
      top_k: sample among this many of the most probable tokens, and those as probable
        as the k-th; 0 for all.
      top_p: in (0, 1]; sample among the fewest most probable tokens whose probabilities
        add up to this, after `temperature` and `top_k`.
      length_penalty: the alpha of the scores; it does not change the samples.
      min_tokens: minimum tokens of an output before its eos.

    Raises:
      UserError: a value is invalid.
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
        _check_common(self, problems)
        problems.raise_if_any(UserError)


SearchParams: TypeAlias = BeamParams | SamplingParams


def penalty_of(search_params: SearchParams, lengths: Array) -> jax.Array:
    """Returns the divisors of the log-probabilities of outputs of these lengths."""
    return length_penalty(
        lengths,
        search_params.length_penalty,
        normalization=search_params.length_normalization,
    )


def params_from_config(config: DecodingConfig) -> SearchParams:
    """Returns the search or sampling parameters of a configuration."""
    if not config.sample:
        return BeamParams(
            beam_size=config.beam_size,
            n_best=config.n_best,
            beam_rule=config.beam_rule,
            length_penalty=config.length_penalty,
            length_normalization=config.length_normalization,
            min_tokens=config.min_tokens,
            allow_unk=config.allow_unk,
            max_length_ratio=config.max_length_ratio,
        )
    return SamplingParams(
        num_samples=config.n_best,
        temperature=config.temperature,
        top_k=config.top_k,
        top_p=config.top_p,
        length_penalty=config.length_penalty,
        length_normalization=config.length_normalization,
        min_tokens=config.min_tokens,
        allow_unk=config.allow_unk,
        max_length_ratio=config.max_length_ratio,
    )


def _check_common(
    search_params: BeamParams | SamplingParams, problems: ErrorCollector
) -> None:
    """Checks the fields that both classes have."""
    _check_word(
        "length_normalization",
        search_params.length_normalization,
        LENGTH_NORMALIZATIONS,
        problems,
    )
    problems.check(
        0 <= search_params.max_length_ratio < float("inf"),
        f"max_length_ratio={search_params.max_length_ratio} must be finite and at "
        "least 0. Change max_length_ratio.",
    )
    problems.check(
        0 <= search_params.length_penalty < float("inf"),
        f"length_penalty={search_params.length_penalty} must be finite and at least 0. "
        "Change length_penalty.",
    )
    problems.check(
        search_params.min_tokens >= 0,
        f"min_tokens={search_params.min_tokens} must be at least 0. Raise min_tokens.",
    )


def _check_word(
    name: str, value: str, known: tuple[str, ...], problems: ErrorCollector
) -> None:
    problems.check(
        value in known,
        f"{name}={value!r} is not known; known are {', '.join(map(repr, known))}. "
        f"Change {name}.",
    )
