"""Builds the trainable models: the Transformer, and the baseline of Table 1.

Both take the same arguments and implement `StepModel`, so nothing above this file
depends on which it is.
"""

from __future__ import annotations

import dataclasses

from flax import linen as nn

from t2t_jax.model import counting
from t2t_jax.model.config import (
    ModelConfig,
    TransformerConfig,
    resolve_attention,
    resolve_compute_dtype,
)
from t2t_jax.model.rnn import counting as rnn_counting
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.rnn.step_model import RNNStepModel
from t2t_jax.model.step_model import TransformerStepModel
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import Params, StepModel


def make_module(config: ModelConfig, *, platform: str | None = None) -> nn.Module:
    """Builds the module of a configuration.

    Args:
      platform: cpu, gpu or tpu; resolves `compute_dtype="auto"` and
        `attention="cudnn"`. None: JAX's default device, at tracing time.

    Returns:
      A module that takes the arguments of `Transformer.__call__`.

    Example:
      >>> type(make_module(TransformerConfig())).__name__
      'Transformer'
    """
    if platform:
        dtype = resolve_compute_dtype(config, platform)
        config = dataclasses.replace(config, compute_dtype=dtype)
    if not isinstance(config, TransformerConfig):
        return RNN(config)
    if platform:
        kernel = resolve_attention(config, platform)
        config = dataclasses.replace(config, attention=kernel)
    return Transformer(config)


def make_step_model(module: nn.Module, params: Params) -> StepModel:
    """Binds a module from `make_module` to its parameters, for decoding.

    Raises:
      TypeError: the module is neither a `Transformer` nor an `RNN`.
    """
    if isinstance(module, Transformer):
        return TransformerStepModel(module, params)
    if isinstance(module, RNN):
        return RNNStepModel(module, params)
    raise TypeError(
        f"module must be a Transformer or an RNN, not {type(module).__name__}. Pass a "
        "StepModel of your own to decoding."
    )


def count_parameters(config: ModelConfig) -> counting.ParameterCount:
    """Counts the parameters of a configuration's model.

    Example:
      >>> count_parameters(TransformerConfig()).total
      63045632
    """
    if isinstance(config, TransformerConfig):
        return counting.count_parameters(config)
    return rnn_counting.count_rnn_parameters(config)


def training_flops(
    config: ModelConfig, *, source_length: float, target_length: float
) -> counting.FlopCount | rnn_counting.RNNFlopCount:
    """Counts the FLOPs of training on one sentence pair, forward and backward.

    Returns:
      The numbers, by part, and their `total`.
    """
    lengths = {"source_length": source_length, "target_length": target_length}
    if isinstance(config, TransformerConfig):
        return counting.training_flops(config, **lengths)
    return rnn_counting.rnn_training_flops(config, **lengths)
