"""The two models that can be trained: the paper's, and the baseline of its Table 1.

Both take the same arguments and speak the same `StepModel`, so nothing above this file
knows which of them it holds.
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
    """Builds the module that a configuration describes.

    Args:
      config: of the Transformer or of the recurrent baseline.
      platform: of the devices that it will run on, cpu, gpu or tpu, which decides what
        `compute_dtype="auto"` is, and whether `attention="cudnn"` can be; None: JAX's
        default device, whenever it is traced.

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

    Args:
      params: nested dict of float32 arrays.

    Raises:
      TypeError: the module is of another kind, which has its own `StepModel`.
    """
    if isinstance(module, Transformer):
        return TransformerStepModel(module, params)
    if isinstance(module, RNN):
        return RNNStepModel(module, params)
    raise TypeError(
        f"A step model is known for Transformer and RNN, and {type(module).__name__} "
        "came. Give decoding a StepModel of your own."
    )


def count_parameters(config: ModelConfig) -> counting.ParameterCount:
    """Counts the parameters of the model that a configuration describes.

    Args:
      config: of the Transformer or of the recurrent baseline.

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
    """Counts the operations of training on one sentence pair, forward and backward.

    Args:
      config: of the Transformer or of the recurrent baseline.

    Returns:
      The numbers, by part, and their `total`.
    """
    lengths = {"source_length": source_length, "target_length": target_length}
    if isinstance(config, TransformerConfig):
        return counting.training_flops(config, **lengths)
    return rnn_counting.rnn_training_flops(config, **lengths)
