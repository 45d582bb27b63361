"""The paper's models of constituency parsing (§6.3, Table 4).

"A 4-layer transformer with d_model = 1024": all else is as in the base model, but for
the vocabulary, dropout and learning rate, which were chosen on section 22 and are not
printed, and the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from t2t_jax.config import Config, parse, set_keys
from t2t_jax.data.corpora.open import reads_trees

PRINTED: Mapping[str, Any] = {
    "model.num_layers": 4,
    "model.d_model": 1_024,
    "decoding.beam_size": 21,
    "decoding.length_penalty": 0.3,
    "decoding.max_extra_tokens": 300,
}
"""What the paper prints, where it is not as in the base model."""

_DEPTHS = {"model.d_k": 128, "model.d_v": 128}  # d_model / h, §3.2.2

CONFIGURED: Mapping[str, Any] = {
    **PRINTED,
    **_DEPTHS,
    "model.tying": "decoder",  # sides with their own vocabularies: open
    "vocabulary.size": 128,  # symbols, at most; of which side and kind: open
    "vocabulary.unit": "words",
    "data.row_length": 512,  # open; no tree is longer
    "data.max_length": 512,
    "decoding.max_source_length": 256,
    "decoding.tokens_per_batch": 4_096,  # output slots, each held by 21 beams
}
"""Keys that `configs/parsing_wsj.py` and `configs/parsing_semi.py` share."""

_EQUATION_3 = 4.9411e-4  # its peak: 1,024 ** -0.5 * 4,000 ** -0.5

ROWS: Mapping[str, Mapping[str, Any]] = {
    **{
        f"dropout_{dropout:g}_rate_{rate:g}": {
            "model.dropout": dropout,
            "model.attention_dropout": dropout,
            "optimizer.peak_learning_rate": rate * _EQUATION_3,
        }
        for dropout in (0.1, 0.2, 0.3, 0.4)
        for rate in (0.5, 1.0, 2.0)
    },
    "base": {},  # dropout and learning rate of the base model
}
"""What is tried on section 22: dropout, "both attention and residual", and rates."""


class Setting(NamedTuple):
    """A row of Table 4.

    Attributes:
      tokens: of the vocabulary.
      f1: on section 23 of the Wall Street Journal.
    """

    name: str
    tokens: int
    f1: float


SETTINGS = (Setting("WSJ only", 16_000, 91.3), Setting("semi-supervised", 32_000, 92.7))
"""The paper's two models."""


def is_parser(config: Config) -> bool:
    """Returns whether a configuration trains on trees."""
    return reads_trees(config.data.train)


def paper_model(config: Config) -> Config:
    """Returns the model of the paper that a configuration is compared with.

    It is a parser of §6.3 for one that trains on trees, that with as many tokens if
    there is one; else the base model.

    Example:
      >>> paper_model(Config()) == Config()
      True
    """
    if not is_parser(config):
        return Config()
    vocabulary, sizes = config.vocabulary, [setting.tokens for setting in SETTINGS]
    tokens = vocabulary.source_size or vocabulary.size
    size = {"vocabulary.size": tokens if tokens in sizes else sizes[0]}
    return parse(set_keys({}, {**PRINTED, **_DEPTHS, **size}))
