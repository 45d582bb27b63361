"""The encoder: the left half of the paper's Figure 1."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.functional.masks import Segments
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.defaults import positions_or_default
from t2t_jax.model.embedding import Positions
from t2t_jax.model.feed_forward import FeedForward
from t2t_jax.model.sublayer import AddAndNorm, Block, Dropout, Norm
from t2t_jax.types import Array


class Layer(nn.Module):
    """The sub-layers of every layer: self-attention and a feed-forward network.

    A subclass has the `__call__`. Paper: §3.1.
    """

    config: TransformerConfig
    attention: Block = MultiHeadAttention
    feed_forward_network: Block = FeedForward

    def setup(self) -> None:
        """Declares two sub-layers, each with its "Add & Norm"."""
        self.self_attention: MultiHeadAttention = self.attention(self.config)
        self.self_attention_norm = AddAndNorm(self.config)
        self.feed_forward: FeedForward = self.feed_forward_network(self.config)
        self.feed_forward_norm = AddAndNorm(self.config)

    def attend_to_self(
        self,
        x_BxLxD: jax.Array,
        segments: Segments,
        rows_B: Array | None,
        rotated_BxL: Array | None,
    ) -> jax.Array:
        """Computes the first sub-layer: [B, L, D]."""

        def self_attention(x: jax.Array) -> jax.Array:
            projected = self.self_attention.keys_values(x, rotated_BxL)
            return self.self_attention(
                x, projected, segments=segments, rows_B=rows_B, rotated_BxQ=rotated_BxL
            )

        return self.self_attention_norm(x_BxLxD, self_attention, rows_B=rows_B)

    def transform(self, x_BxLxD: jax.Array, rows_B: Array | None) -> jax.Array:
        """Computes the last sub-layer, of the feed-forward network: [B, L, D]."""
        return self.feed_forward_norm(
            x_BxLxD, lambda x: self.feed_forward(x, rows_B), rows_B=rows_B
        )


class EncoderLayer(Layer):
    """Self-attention and a feed-forward network.

    Paper: §3.1, "Encoder".
    """

    def __call__(
        self,
        x_BxSxD: jax.Array,
        *,
        segments: Segments,
        rows_B: Array | None,
        rotated_BxS: Array | None,
    ) -> jax.Array:
        """Computes one layer: [B, S, D]."""
        x_BxSxD = self.attend_to_self(x_BxSxD, segments, rows_B, rotated_BxS)
        return self.transform(x_BxSxD, rows_B)


class Stack(nn.Module):
    """Layers, with positions and dropout before them.

    A subclass has the class of its layers, `layer_class`, and their number.

    Paper: Figure 1; §3.1.
    """

    config: TransformerConfig
    attention: Block = MultiHeadAttention
    feed_forward_network: Block = FeedForward

    layer_class: ClassVar[type[Layer]]

    def setup(self) -> None:
        """Declares positions, N layers, and the final norm of pre-norm."""
        config = self.config
        self.positions = Positions(config)
        self.dropout = Dropout(config.dropout)
        layer: Any = self.layer_class
        layer = nn.remat(layer) if config.remat else layer
        blocks = (self.attention, self.feed_forward_network)
        self.layer = [layer(config, *blocks) for _ in range(self.num_layers)]
        if config.norm_position == "pre":
            self.final_norm = Norm(config)

    @property
    def num_layers(self) -> int:
        """N."""
        return self.config.num_layers

    def finish(self, x_BxLxD: jax.Array) -> jax.Array:
        """Applies the final norm of pre-norm: [B, L, D]."""
        if self.config.norm_position == "pre":
            x_BxLxD = self.final_norm(x_BxLxD)
        return x_BxLxD


class Encoder(Stack):
    """Computes the memory from source embeddings.

    Paper: Figure 1, left; §3.1.
    """

    layer_class = EncoderLayer

    def __call__(
        self,
        x_BxSxD: jax.Array,
        *,
        segments_BxS: Array,
        positions_BxS: Array | None,
        rows_B: Array | None,
    ) -> jax.Array:
        """Encodes all positions.

        Returns:
          memory: [B, S, D]
        """
        segments = Segments(segments_BxS, segments_BxS)
        shape, config = x_BxSxD.shape[:2], self.config
        positions_BxS = positions_or_default(config, positions_BxS, shape)
        if config.tag_position == "last":
            positions_BxS = first_to_last(positions_BxS, segments_BxS)
        x_BxSxD = self.dropout(self.positions(x_BxSxD, positions_BxS), rows_B)
        rotated_BxS = positions_BxS if config.positions == "rotary" else None
        for layer in self.layer:
            x_BxSxD = layer(
                x_BxSxD, segments=segments, rows_B=rows_B, rotated_BxS=rotated_BxS
            )
        return self.finish(x_BxSxD)


def first_to_last(positions_BxS: Array, segments_BxS: Array) -> jax.Array:
    """Returns positions at which the first token of each sentence follows the others.

    Attention does not know the order of its inputs, so that the token need not move.

    Example:
      >>> segments = jnp.array([[1, 1, 1, 2, 2, 0]])
      >>> first_to_last(jnp.array([[0, 1, 2, 0, 1, 0]]), segments).tolist()
      [[2, 0, 1, 1, 0, 0]]
    """
    positions_BxS, segments_BxS = jnp.asarray(positions_BxS), jnp.asarray(segments_BxS)
    is_same_BxSxS = segments_BxS[:, :, None] == segments_BxS[:, None, :]
    last_BxS = jnp.sum(is_same_BxSxS, axis=-1, dtype=positions_BxS.dtype) - 1
    return jnp.where(positions_BxS == 0, last_BxS, positions_BxS - 1)
