"""Defaults for omitted inputs, and for settings that are "auto"."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from t2t_jax.devices.processor import resolve_compute_dtype
from t2t_jax.model.config import ModelConfig, TransformerConfig
from t2t_jax.types import Array


def positions_or_default(
    config: TransformerConfig, positions_BxL: Array | None, shape: tuple[int, ...]
) -> Array:
    """Fills in omitted positions of [B, L] tokens: 0 to L - 1.

    Raises:
      ValueError: there are fewer learned positions than L. (Explicit positions are
        traced; beyond the table they give NaN.)
    """
    if positions_BxL is not None:
        return positions_BxL
    check_positions(config, shape[1])
    return jnp.broadcast_to(jnp.arange(shape[1])[None], shape)


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
    return resolve_compute_dtype(config.compute_dtype, default_platform())


def past_dtype(config: ModelConfig) -> str:
    """Returns the dtype of the keys and values of decoded positions.

    It is the compute dtype, but float32 on a CPU, where XLA widens all of a bfloat16
    array to write a position of it.
    """
    return "float32" if default_platform() == "cpu" else compute_dtype(config)
