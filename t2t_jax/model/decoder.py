"""The decoder: the right half of the paper's Figure 1, at once and step by step."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t2t_jax.functional.masks import Segments
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.config import decoder_layers
from t2t_jax.model.defaults import positions_or_default
from t2t_jax.model.encoder import Layer, Stack
from t2t_jax.model.past import Cache, CrossKV, KVPair, LayerPast, Position
from t2t_jax.model.sublayer import AddAndNorm
from t2t_jax.types import Array


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention, and a feed-forward network.

    Paper: §3.1, "Decoder": "In addition to the two sub-layers in each encoder layer",
      it "inserts a third sub-layer".
    """

    def setup(self) -> None:
        """Declares three sub-layers, each with its "Add & Norm"."""
        super().setup()
        self.cross_attention: MultiHeadAttention = self.attention(self.config)
        self.cross_attention_norm = AddAndNorm(self.config)

    def __call__(
        self,
        x_BxTxD: jax.Array,
        memory: KVPair,
        *,
        self_segments: Segments,
        cross_segments: Segments,
        rows_B: Array | None,
        rotated_BxT: Array | None,
    ) -> jax.Array:
        """Computes one layer at all positions: [B, T, D]."""

        def cross_attention(x: jax.Array) -> jax.Array:
            return self.cross_attention(
                x, memory, segments=cross_segments, rows_B=rows_B
            )

        x_BxTxD = self.attend_to_self(x_BxTxD, self_segments, rows_B, rotated_BxT)
        x_BxTxD = self.cross_attention_norm(x_BxTxD, cross_attention, rows_B=rows_B)
        return self.transform(x_BxTxD, rows_B)

    def step(
        self,
        x_BxWxD: jax.Array,
        memory: KVPair,
        *,
        mask_Bx1x1xS: jax.Array,
        past: LayerPast,
        position: Position,
    ) -> tuple[jax.Array, LayerPast]:
        """Computes one layer at one position of every beam.

        The beams of a sentence are queries to the same memory, which is not repeated
        for them.

        Returns:
          output: [B, W, D]
          past: with this position added.
        """

        def self_attention(x: jax.Array) -> jax.Array:
            nonlocal past
            y_BxWxD, past = self.self_attention.step(x, past, position)
            return y_BxWxD

        def cross_attention(x: jax.Array) -> jax.Array:
            return self.cross_attention.attend_to_memory(
                x, memory, mask_Bx1x1xS=mask_Bx1x1xS
            )

        x_BxWxD = self.self_attention_norm(x_BxWxD, self_attention, rows_B=None)
        x_BxWxD = self.cross_attention_norm(x_BxWxD, cross_attention, rows_B=None)
        return self.transform(x_BxWxD, None), past


class Decoder(Stack):
    """Computes the decoder's output vectors from target embeddings and the memory.

    Paper: Figure 1, right; §3.1.
    """

    layer_class = DecoderLayer

    @property
    def num_layers(self) -> int:
        """N, or the decoder's own number."""
        return decoder_layers(self.config)

    def project_memory(self, memory_BxSxD: jax.Array, segments_BxS: Array) -> CrossKV:
        """Projects the memory for every layer's cross-attention."""
        layers = tuple(
            layer.cross_attention.keys_values(memory_BxSxD) for layer in self.layer
        )
        return CrossKV(layers, jnp.asarray(segments_BxS))

    def __call__(
        self,
        x_BxTxD: jax.Array,
        memory: CrossKV,
        *,
        segments_BxT: Array,
        positions_BxT: Array | None,
        rows_B: Array | None,
    ) -> jax.Array:
        """Decodes all positions at once, with a causal mask: [B, T, D].

        Args:
          x_BxTxD: [B, T, D] embedded target tokens, bos first.
        """
        self_segments = Segments(segments_BxT, segments_BxT, is_causal=True)
        cross_segments = Segments(segments_BxT, memory.segments)
        shape, config = x_BxTxD.shape[:2], self.config
        positions_BxT = positions_or_default(config, positions_BxT, shape)
        x_BxTxD = self.dropout(self.positions(x_BxTxD, positions_BxT), rows_B)
        rotated_BxT = positions_BxT if config.positions == "rotary" else None
        for layer, keys_values in zip(self.layer, memory.layers, strict=True):
            x_BxTxD = layer(
                x_BxTxD,
                keys_values,
                self_segments=self_segments,
                cross_segments=cross_segments,
                rows_B=rows_B,
                rotated_BxT=rotated_BxT,
            )
        return self.finish(x_BxTxD)

    def step(
        self, x_BxWxD: jax.Array, cache: Cache, position: Array
    ) -> tuple[jax.Array, Cache]:
        """Decodes one position of every beam.

        Args:
          x_BxWxD: [B, W, D] embedded tokens, one for each beam.
          position: scalar integer below the cache's length.

        Returns:
          output: [B, W, D]
          cache: with this position added.
        """
        mask_Bx1x1xS = (cache.memory.segments > 0)[:, None, None]
        at, past = cache.past.begin(position)
        # One position for all beams: its sinusoids are computed once.
        x_BxWxD = self.positions(x_BxWxD, jnp.full((1, 1), position))
        layers = []
        each = zip(self.layer, cache.memory.layers, past.layers, strict=True)
        for layer, memory, layer_past in each:
            x_BxWxD, layer_past = layer.step(
                x_BxWxD, memory, mask_Bx1x1xS=mask_Bx1x1xS, past=layer_past, position=at
            )
            layers.append(layer_past)
        past = past._replace(layers=tuple(layers))
        return self.finish(x_BxWxD), cache._replace(past=past)
