"""The dtype of activations, where a configuration leaves it to the device."""

from __future__ import annotations

from typing import Any

import jax

from t2t_jax.model.config import ModelConfig, resolve_compute_dtype


def compute_dtype(config: ModelConfig) -> str:
    """Names the dtype of activations of a module that is being traced.

    A module from `architectures.make_module(config, platform=…)` knows it already.
    Elsewhere "auto" is decided by JAX's default device, or the default backend.

    Args:
      config: of the module.

    Returns:
      "float32" or "bfloat16".

    Example:
      >>> from t2t_jax.model.config import TransformerConfig
      >>> compute_dtype(TransformerConfig(compute_dtype="bfloat16"))
      'bfloat16'
    """
    settings: Any = jax.config  # JAX does not declare what it holds.
    default = settings.jax_default_device  # a device, a platform's name, or None
    platform = getattr(default, "platform", default) or jax.default_backend()
    return resolve_compute_dtype(config, platform)
