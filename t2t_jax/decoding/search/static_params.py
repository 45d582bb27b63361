"""Parameters of beam search and sampling, static under `jax.jit`."""

from __future__ import annotations

import dataclasses
import functools
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from t2t_jax.decoding.config import (
    DecodingConfig,
    above_0,
    boolean,
    finite,
    is_whole,
    share,
    whole,
)
from t2t_jax.errors import ErrorCollector, UserError, checked, one_of
from t2t_jax.types import BOS, EOS, PAD, UNK


class SpecialIds(NamedTuple):
    """The special token ids of a model."""

    pad: int = PAD
    bos: int = BOS
    eos: int = EOS
    unk: int = UNK


DEFAULT_IDS = SpecialIds()
"""The ids of the vocabularies that t2t_jax builds."""


def _are_ids(value: Any) -> bool:
    is_id = partial(is_whole, least=0)
    return isinstance(value, tuple) and all(map(is_id, value))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OutputParams:
    """What beam search and sampling have in common, by keyword only."""

    length_normalization: str = one_of("paper", "power")
    allow_unk: bool = boolean(True)
    max_length_ratio: float = finite(0.0, "0 for no limit")
    forbidden: tuple[int, ...] = checked(
        (), "be a tuple of whole numbers of at least 0", _are_ids
    )

    def __post_init__(self) -> None:
        problems, ids = ErrorCollector("", self, root=""), vars(self)["ids"]
        rule = "be whole numbers of at least 0, as BeamParams().ids._replace(unk=5)"
        is_right = _are_ids(ids) and hasattr(ids, "eos")
        problems.require("ids", repr(ids), is_right, rule)
        problems.raise_if_any(UserError)


@dataclasses.dataclass(frozen=True)
class BeamParams(_OutputParams):
    """Parameters of a beam search.

    Attributes:
      beam_size: W, live hypotheses per sentence. A beam of 1 is greedy: an eos that is
        only the second best continuation does not end the output.
      length_penalty: alpha: a score is the log-probability, divided as
        `length_normalization` says by the number of tokens n, eos counted.
      n_best: outputs that are returned for each sentence, at most `beam_size`.
      ids: of the special tokens.
      min_tokens: fewest tokens of an output, eos not counted.
      length_normalization: "paper", by ((5 + n) / 6)^alpha; or "power", by n^alpha.
      allow_unk: whether outputs may hold the unknown token.
      beam_rule: "fixed" or "shrinking"; see `beam_search`.
      max_length_ratio: limit of tokens of an output for each of its source, 0 for none.
      forbidden: ids that no output has but where they are forced, without a cost, such
        as those of tags of languages.

    Raises:
      UserError: a value is invalid.
    """

    beam_size: int = whole(4, least=1)
    length_penalty: float = finite(0.6, "0.6 in the paper")
    n_best: int = whole(1, least=1)
    ids: SpecialIds = DEFAULT_IDS
    min_tokens: int = whole(0)
    _: dataclasses.KW_ONLY
    beam_rule: str = one_of("fixed", "shrinking")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_best > self.beam_size:
            raise UserError(
                f"n_best={self.n_best} must be at most beam_size={self.beam_size}. "
                "Lower one or raise the other."
            )


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
      forbidden: ids that no output has but where they are forced, without a cost, such
        as those of tags of languages.

    Raises:
      UserError: a value is invalid.
    """

    num_samples: int = whole(1, least=1)
    temperature: float = above_0(1.0)
    top_k: int = whole(0)
    top_p: float = share(1.0)
    length_penalty: float = finite(0.6, "0.6 in the paper")
    ids: SpecialIds = DEFAULT_IDS
    min_tokens: int = whole(0)


SearchParams: TypeAlias = BeamParams | SamplingParams


@functools.cache
def params_from_config(config: DecodingConfig) -> SearchParams:
    """Returns the search or sampling parameters of a configuration."""
    kind = SamplingParams if config.sample else BeamParams
    outputs = config.num_outputs
    values = {**vars(config), "n_best": outputs, "num_samples": outputs}
    names = {field.name for field in dataclasses.fields(kind)} & values.keys()
    return kind(**{name: values[name] for name in names})
