"""The two models that can be trained: the paper's, and the baseline of its Table 1.

Both take the same arguments and speak the same `StepModel`, so nothing above this file
knows which of them it holds.
"""

from __future__ import annotations

from flax import linen as nn

from t2t_jax.model.config import ModelConfig, TransformerConfig
from t2t_jax.model.step_model import TransformerStepModel
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import Params, StepModel


def make_module(config: ModelConfig) -> nn.Module:
    """Builds the module that a configuration describes.

    Args:
      config: of the Transformer or of the recurrent baseline.

    Returns:
      A module that takes the arguments of `Transformer.__call__`.

    Example:
      >>> type(make_module(TransformerConfig())).__name__
      'Transformer'
    """
    if isinstance(config, TransformerConfig):
        return Transformer(config)
    from t2t_jax.model.rnn import RNN

    return RNN(config)


def make_step_model(module: nn.Module, params: Params) -> StepModel:
    """Binds a module from `make_module` to its parameters, for decoding.

    Args:
      module: the model.
      params: nested dict of float32 arrays.
    """
    if isinstance(module, Transformer):
        return TransformerStepModel(module, params)
    from t2t_jax.model.rnn_step_model import RNNStepModel

    return RNNStepModel(module, params)
