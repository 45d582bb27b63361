"""What of a model depends on the device: the dtype of activations, and a kernel."""

from __future__ import annotations

from typing import Any

import jax

from t2t_jax.model.config import (
    ModelConfig,
    TransformerConfig,
    resolve_attention,
    resolve_compute_dtype,
)


def compute_dtype(config: ModelConfig) -> str:
    """Names the dtype of activations of a module that is being traced.

    A module from `architectures.make_module(config, platform=…)` knows it already.
    Elsewhere "auto" is decided by JAX's default device, or the default backend.

    Returns:
      "float32" or "bfloat16".

    Example:
      >>> compute_dtype(TransformerConfig(compute_dtype="bfloat16"))
      'bfloat16'
    """
    return resolve_compute_dtype(config, _default_platform())


def attention_kernel(config: TransformerConfig) -> str:
    """Names what computes attention in a module that is being traced.

    Args:
      config: of the module; decided as `compute_dtype` is.

    Returns:
      "plain" or "cudnn".

    Example:
      >>> attention_kernel(TransformerConfig())
      'plain'
    """
    return resolve_attention(config, _default_platform())


def _default_platform() -> str:
    settings: Any = jax.config  # JAX does not declare what it holds.
    default = settings.jax_default_device  # a device, a platform's name, or None
    platform = getattr(default, "platform", default) or jax.default_backend()
    return str(platform)
