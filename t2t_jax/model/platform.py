"""Platform-dependent choices: the dtype of activations, and the attention kernel."""

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
    """Returns the dtype of activations for tracing, "float32" or "bfloat16".

    `architectures.make_module(config, platform=…)` resolves "auto" before. Otherwise
    JAX's default device or backend decides.

    Example:
      >>> compute_dtype(TransformerConfig(compute_dtype="bfloat16"))
      'bfloat16'
    """
    return resolve_compute_dtype(config, _default_platform())


def attention_kernel(config: TransformerConfig) -> str:
    """Returns the attention implementation for tracing, "plain" or "cudnn".

    Example:
      >>> attention_kernel(TransformerConfig())
      'plain'
    """
    return resolve_attention(config, _default_platform())


def _default_platform() -> str:
    settings: Any = jax.config  # untyped in JAX
    default = settings.jax_default_device  # a device, a platform's name, or None
    platform = getattr(default, "platform", default) or jax.default_backend()
    return str(platform)
