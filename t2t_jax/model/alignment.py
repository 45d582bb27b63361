"""Where the decoder looks in the source: one layer's weights, for alignments."""

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
    """Reads one layer's cross-attention off a pass over pairs of sentences.

    Attributes:
      module: the model.
      layer: of the decoder, from 0; negative ones count from the last. A recurrent
        model looks at the source in one place only, which is layer 0.

    Raises:
      UserError: there is no such layer.
    """

    module: nn.Module
    layer: int = -1

    def __post_init__(self) -> None:
        layers = _num_layers(self.module)
        if not -layers <= self.layer < layers:
            raise UserError(
                f"decoding.attention_layer={self.layer} must name one of the "
                f"{layers} layers of the decoder that look at the source, from 0, or "
                "from -1 backwards. Change config.decoding.attention_layer."
            )

    def __call__(
        self, variables: PyTree, source_BxS: Array, target_inputs_BxT: Array
    ) -> jax.Array:
        """Computes the weights, each row before the token that it predicts.

        Args:
          variables: what the module's `apply` takes first.
          source_BxS: [B, S] tokens; pad = 0.
          target_inputs_BxT: [B, T] tokens, bos first.

        Returns:
          [B, T, S] float32, the mean over the heads; a row sums to 1, or to 0 where
          there is pad.
        """
        _, collections = self.module.apply(
            variables, source_BxS, target_inputs_BxT, mutable=["intermediates"]
        )
        sown = collections["intermediates"]["decoder"]
        # What is sown comes as a tuple, for a module may be called more than once.
        if isinstance(self.module, RNN):
            return jnp.asarray(sown["weights"][0], jnp.float32)
        layer = self.layer % _num_layers(self.module)
        weights_BxHxTxS = sown[f"layer_{layer}"]["cross_attention"]["weights"][0]
        return jnp.mean(jnp.asarray(weights_BxHxTxS, jnp.float32), axis=1)


def _num_layers(module: nn.Module) -> int:
    return module.config.num_layers if isinstance(module, Transformer) else 1
