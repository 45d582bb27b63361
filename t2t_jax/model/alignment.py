"""Extracts cross-attention weights of a decoder layer, for alignments."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.errors import UserError
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class AlignmentExtractor:
    """Extracts one layer's cross-attention weights in a teacher-forced pass.

    Attributes:
      module: the model.
      layer: of the decoder, from 0; negative numbers count from the last. A recurrent
        model has one layer with attention, 0.

    Raises:
      UserError: the layer does not exist.
    """

    module: nn.Module
    layer: int = -1

    def __post_init__(self) -> None:
        layers = _num_layers(self.module)
        if not -layers <= self.layer < layers:
            raise UserError(
                f"decoding.attention_layer={self.layer} must be one of the "
                f"{layers} layers of the decoder that attend to the source, from 0, or "
                "from -1 backwards. Change config.decoding.attention_layer."
            )

    def __call__(
        self, variables: PyTree, source_BxS: Array, target_inputs_BxT: Array
    ) -> jax.Array:
        """Computes the weights; row t belongs to the token that position t predicts.

        Args:
          variables: the first argument of the module's `apply`.
          source_BxS: [B, S] tokens; pad = 0.
          target_inputs_BxT: [B, T] tokens, bos first.

        Returns:
          [B, T, S] float32, the mean over the heads; a row sums to 1, or to 0 at pad.
        """
        _, collections = self.module.apply(
            variables, source_BxS, target_inputs_BxT, mutable=["intermediates"]
        )
        sown = collections["intermediates"]["decoder"]
        # Sown values are tuples, since a module may be called more than once.
        if isinstance(self.module, RNN):
            return jnp.asarray(sown["weights"][0], jnp.float32)
        layer = self.layer % _num_layers(self.module)
        weights_BxHxTxS = sown[f"layer_{layer}"]["cross_attention"]["weights"][0]
        return jnp.mean(jnp.asarray(weights_BxHxTxS, jnp.float32), axis=1)


def _num_layers(module: nn.Module) -> int:
    return module.config.num_layers if isinstance(module, Transformer) else 1
