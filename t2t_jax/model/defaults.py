"""Defaults for omitted inputs, and for settings that are "auto"."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from t2t_jax.functional.masks import segments_of
from t2t_jax.model.config import (
    ModelConfig,
    TransformerConfig,
    resolve_compute_dtype,
)
from t2t_jax.types import Array


def default_segments_and_positions(
    config: TransformerConfig,
    tokens_BxL: Array,
    segments_BxL: Array | None,
    *,
    positions_BxL: Array | None,
) -> tuple[Array, Array]:
    """Fills in omitted segments and positions: one sentence a row, from position 0.

    Args:
      tokens_BxL: [B, L] tokens; pad = 0.
      segments_BxL: [B, L] segment numbers; None: 1 for tokens, 0 for pad.
      positions_BxL: [B, L] positions; None: 0 to L - 1.

    Raises:
      ValueError: there are fewer learned positions than L. (Explicit positions are
        traced; beyond the table they give NaN.)
    """
    if segments_BxL is None:
        segments_BxL = segments_of(tokens_BxL)
    if positions_BxL is None:
        batch, length = tokens_BxL.shape
        check_positions(config, length)
        positions_BxL = jnp.broadcast_to(jnp.arange(length)[None], (batch, length))
    return segments_BxL, positions_BxL


def dropout_rows(
    tokens_BxL: Array, rows_B: Array | None, *, deterministic: bool
) -> Array | None:
    """Returns the row numbers for dropout; None if deterministic."""
    if deterministic:
        return None
    return jnp.arange(tokens_BxL.shape[0]) if rows_B is None else rows_B


def check_positions(config: TransformerConfig, length: int) -> None:
    """Checks that the table of learned positions is long enough.

    Raises:
      ValueError: it is shorter than `length`.
    """
    if config.positions == "learned" and length > config.max_positions:
        raise ValueError(
            f"length={length} must be at most max_positions={config.max_positions}, "
            "the number of learned positions. Pass shorter rows, or change "
            "config.model.max_positions before training."
        )


def default_platform() -> str:
    """Returns the platform for which programs are traced: "cpu", "gpu" or "tpu"."""
    settings: Any = jax.config  # untyped in JAX
    default = settings.jax_default_device  # a device, a platform's name, or None
    return str(getattr(default, "platform", default) or jax.default_backend())


def compute_dtype(config: ModelConfig) -> str:
    """Returns the dtype of activations for tracing, "float32" or "bfloat16".

    `architectures.make_module(config, devices=…)` resolves "auto" before. Otherwise
    JAX's default device or backend decides.
    """
    return resolve_compute_dtype(config, default_platform())


def past_dtype(config: ModelConfig) -> str:
    """Returns the dtype of the keys and values of decoded positions.

    It is the compute dtype, but float32 on a CPU, where XLA widens all of a bfloat16
    array to write a position of it.
    """
    return "float32" if default_platform() == "cpu" else compute_dtype(config)
