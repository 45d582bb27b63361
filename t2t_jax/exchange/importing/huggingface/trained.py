"""Finds how the weights of a MarianMTModel were trained, and so what they need.

HF converted OPUS-MT's weights from Marian but computes other wavelengths of positions
and another epsilon than they were trained with. What is known of a directory decides:
what an export of this package noted, stored positions, files of HF's training, or the
bias of the logits, which Marian trains and HF does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from t2t_jax.errors import DataError, UserError
from t2t_jax.exchange.importing.huggingface.settings import Settings
from t2t_jax.exchange.importing.layout import Array, Source, interleaved_from_halves
from t2t_jax.functional.positions import sinusoidal_positions

HF_EPSILON = 1e-5
"""Of torch's layer normalization, which no configuration of HF changes."""

POSITION_TABLES = tuple(
    f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder")
)
"""Tensors with which HF replaces the positions that it computes."""

_MARIAN_EPSILON = 1e-6
_TRAINING_FILES = ("trainer_state.json", "training_args.bin", "optimizer.pt")
_MOST_FIRST_POSITION = 2  # fairseq's
_TABLE_TOLERANCE = 1e-3  # float32 angles of 1,000 positions


class Trained(NamedTuple):
    """What the model keys are by the training of the weights.

    Attributes:
      by: "marian", "huggingface" or "t2t_jax".
      why: the evidence for it, a clause.
    """

    by: str
    why: str
    position_rates: str = "paper"
    first_position: int = 0
    layer_norm_epsilon: float = HF_EPSILON
    attention_biases: bool = True
    output_bias: bool = True

    @property
    def is_marian(self) -> bool:
        """Whether Marian trained them."""
        return self.by == "marian"


def find_trained(
    directory: Path, source: Source, *, bias: Array, settings: Settings, wanted: str
) -> Trained:
    """Finds how weights were trained.

    Args:
      source: stored tables of positions are taken from it.
      bias: [V] of the logits.
      wanted: "huggingface" for what HF computes, "marian" for Marian's own, or "".

    Raises:
      DataError: stored positions are not sinusoids, or what an export noted is invalid.
      UserError: `wanted` is not known.
    """
    if wanted not in ("", "huggingface", "marian"):
        raise UserError(
            f"positions={wanted!r} must be 'huggingface' or 'marian'. "
            "Change --positions, or leave it out."
        )
    stored = _stored_positions(source, settings)
    noted = _noted(settings.marker, str(directory)) if settings.marker else None
    if wanted == "huggingface":
        computed = Trained("huggingface", "it was chosen")
        if noted is not None:
            computed = computed._replace(
                attention_biases=noted.attention_biases, output_bias=noted.output_bias
            )
        return computed._replace(**(stored or {}))
    if wanted == "marian":
        return _marian("it was chosen")
    if noted is not None:
        return noted
    if stored and stored["position_rates"] != "paper":
        return Trained("huggingface", "its positions are stored with it", **stored)
    if any((directory / name).exists() for name in _TRAINING_FILES):
        return Trained("huggingface", "it has files of a training with it")
    if not bias.any():
        return Trained(
            "huggingface", "its final_logits_bias is zero, and Marian trains one"
        )
    return _marian("it has a trained final_logits_bias, which only Marian trains")


def _marian(why: str) -> Trained:
    return Trained(
        "marian",
        why,
        position_rates="tensor2tensor",
        layer_norm_epsilon=_MARIAN_EPSILON,
    )


def _stored_positions(source: Source, settings: Settings) -> dict[str, Any] | None:
    """Returns rates and first position of stored tables; None if there are none."""
    shape = (settings.max_positions, settings.d_model)
    tables = [source.take(name, *shape) for name in POSITION_TABLES if name in source]
    if not tables:
        return None
    for first in range(_MOST_FIRST_POSITION + 1):
        for rates in ("paper", "tensor2tensor"):
            sinusoids = position_table(
                settings.max_positions, settings.d_model, rates=rates, first=first
            )
            if all(
                np.abs(table - sinusoids).max() < _TABLE_TOLERANCE for table in tables
            ):
                return {"position_rates": rates, "first_position": first}
    raise DataError(
        f"{POSITION_TABLES[0]} must be sinusoids with the rates of the paper or of "
        "Marian, and is not. Remove it, if HF's are to be used."
    )


def position_table(count: int, d_model: int, *, rates: str, first: int) -> Array:
    """Computes sinusoids [count, D] in HF's layout: sines, then cosines.

    Example:
      >>> position_table(2, 4, rates="paper", first=0).round(2).tolist()
      [[0.0, 0.0, 1.0, 1.0], [0.8..., 0.0..., 0.54..., 1.0]]
    """
    pairs = np.asarray(
        sinusoidal_positions(np.arange(first, first + count), d_model, rates=rates)
    )
    table = np.empty_like(pairs)
    table[:, interleaved_from_halves(d_model)] = pairs
    return table


def _noted(marker: Mapping[str, Any], name: str) -> Trained:
    """Reads what an export of this package noted."""
    rates, first, epsilon, attention_biases, output_bias = (
        marker.get(key) for key in Trained._fields[2:]
    )
    if (
        rates in ("paper", "tensor2tensor")
        and type(first) is int
        and 0 <= first <= _MOST_FIRST_POSITION
        and type(epsilon) is float
        and 0 < epsilon < 1
        and isinstance(attention_biases, bool)
        and isinstance(output_bias, bool)
    ):
        return Trained(
            "t2t_jax",
            "t2t_jax exported the model",
            position_rates=str(rates),
            first_position=first,
            layer_norm_epsilon=epsilon,
            attention_biases=attention_biases,
            output_bias=output_bias,
        )
    raise DataError(
        f"{name}: what t2t_jax noted in config.json is invalid: {dict(marker)!r:.200}. "
        "Export the model again."
    )
