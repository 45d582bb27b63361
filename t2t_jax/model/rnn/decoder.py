"""The recurrent decoder: an LSTM that looks at the source before each word it reads."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.functional.masks import segment_mask
from t2t_jax.model.attention import Projection
from t2t_jax.model.config import RNNConfig
from t2t_jax.model.platform import compute_dtype
from t2t_jax.model.rnn.additive_attention import AdditiveAttention, AttendedMemory
from t2t_jax.model.rnn.layers import LSTM, State, empty_state, scan_rows
from t2t_jax.model.sublayer import Dropout
from t2t_jax.types import Array

States: TypeAlias = tuple[State, ...]
"""The state of each layer of the decoder: what it remembers of one sentence or beam."""


class AttentionOutput(NamedTuple):
    """What the attentive layer passes on, for every position or beam.

    Attributes:
      output: [..., Dh] of the LSTM.
      context: [..., Dh] what it looked at.
      weights: [..., S] float32, how much it looked where.
    """

    output: jax.Array
    context: jax.Array
    weights: jax.Array


class AttentiveLSTM(nn.Module):
    """Is the decoder's first layer: it looks at the source, then reads one more word.

    The query is the state before the word is read, as in the first translation with
    attention. Only this layer has to wait for it: all above it, the readout and the
    logits see every position at once.
    """

    config: RNNConfig

    def setup(self) -> None:
        """Declares the attention and the LSTM."""
        self.attention = AdditiveAttention(self.config)
        self.lstm = LSTM(self.config.d_hidden, compute_dtype(self.config))

    def __call__(
        self, words_BxTxD: jax.Array, memory: AttendedMemory, segments_BxT: Array
    ) -> AttentionOutput:
        """Reads rows of segments.

        Args:
          words_BxTxD: [B, T, D] embedded target tokens, shifted right.
          memory: from `attention.read`.
          segments_BxT: [B, T] segment numbers from 1; 0 is padding.

        Returns:
          Arrays [B, T, ...].
        """

        def read(
            layer: AttentiveLSTM, state: State, now: tuple[jax.Array, jax.Array]
        ) -> tuple[State, AttentionOutput]:
            word_BxD, mask_BxS = now
            state, look = layer.step(
                state, word_BxD[:, None], memory=memory, mask_BxWxS=mask_BxS[:, None]
            )
            return state, AttentionOutput(*(x_Bx1[:, 0] for x_Bx1 in look))

        mask_BxTxS = segment_mask(segments_BxT, memory.segments)
        look: AttentionOutput = scan_rows(
            self,
            read,
            (words_BxTxD, mask_BxTxS),
            # One hypothesis a row: the beams' axis of `step` is 1.
            state=empty_state((words_BxTxD.shape[0], 1, self.config.d_hidden)),
            segments_BxL=segments_BxT,
        )
        return look

    def step(
        self,
        state: State,
        words_BxWxD: jax.Array,
        *,
        memory: AttendedMemory,
        mask_BxWxS: jax.Array,
    ) -> tuple[State, AttentionOutput]:
        """Reads one word of every beam: the next state, and arrays [B, W, ...]."""
        context_BxWxDh, weights_BxWxS = self.attention(state[1], memory, mask_BxWxS)
        inputs = jnp.concatenate([words_BxWxD, context_BxWxDh], axis=-1)
        state, output_BxWxDh = self.lstm.step(state, inputs)
        return state, AttentionOutput(output_BxWxDh, context_BxWxDh, weights_BxWxS)


class RNNDecoder(nn.Module):
    """Predicts each word from the words before it and the memory."""

    config: RNNConfig

    def setup(self) -> None:
        """Declares the attentive layer, the LSTMs above it, and the readout."""
        config = self.config
        above = range(config.num_layers - 1)
        new = (config.d_hidden, compute_dtype(config))
        self.attentive_layer = AttentiveLSTM(config)
        self.layer = [LSTM(*new) for _ in above]
        self.readout = Projection(
            (2 * config.d_hidden + config.d_model, config.d_model), 1, "...x,xd->...d"
        )
        self.word_dropout = Dropout(config.dropout)
        self.dropout = [Dropout(config.dropout) for _ in above]
        self.readout_dropout = Dropout(config.dropout)

    def project_memory(
        self, memory_BxSxDh: jax.Array, segments_BxS: Array
    ) -> AttendedMemory:
        """Projects the memory once for all steps; see `AdditiveAttention.read`."""
        return self.attentive_layer.attention.read(memory_BxSxDh, segments_BxS)

    def __call__(
        self,
        words_BxTxD: jax.Array,
        memory: AttendedMemory,
        *,
        segments_BxT: Array,
        rows_B: Array | None,
    ) -> jax.Array:
        """Decodes all positions.

        Args:
          words_BxTxD: [B, T, D] embedded target tokens, shifted right.
          memory: from `read`.
          segments_BxT: [B, T] segment numbers from 1; 0 is padding.
          rows_B: [B] global row numbers for dropout; None: deterministic.

        Returns:
          [B, T, D] what the logits are made of. Whoever makes the collection
          "intermediates" mutable finds the attention weights [B, T, S] there.
        """
        words_BxTxD = self.word_dropout(words_BxTxD, rows_B)
        look = self.attentive_layer(words_BxTxD, memory, segments_BxT)
        self.sow("intermediates", "weights", look.weights)
        output_BxTxDh = look.output
        for dropout, layer in zip(self.dropout, self.layer, strict=True):
            output_BxTxDh = layer(dropout(output_BxTxDh, rows_B), segments_BxT)
        y_BxTxD = self._read_out(output_BxTxDh, look.context, words_BxTxD)
        return self.readout_dropout(y_BxTxD, rows_B)

    def step(
        self, words_BxWxD: jax.Array, memory: AttendedMemory, states: States
    ) -> tuple[jax.Array, States]:
        """Decodes one word of every beam; a row of the memory is one sentence here.

        Args:
          words_BxWxD: [B, W, D] the embedded words.
          memory: from `read`.
          states: [B, W, Dh] after the words before.

        Returns:
          y: [B, W, D] what the logits are made of.
          states: after these words.
        """
        mask_Bx1xS = (memory.segments > 0)[:, None]
        first, look = self.attentive_layer.step(
            states[0], words_BxWxD, memory=memory, mask_BxWxS=mask_Bx1xS
        )
        following = [first]
        output_BxWxDh = look.output
        for layer, state in zip(self.layer, states[1:], strict=True):
            state, output_BxWxDh = layer.step(state, output_BxWxDh)
            following.append(state)
        y_BxWxD = self._read_out(output_BxWxDh, look.context, words_BxWxD)
        return y_BxWxD, tuple(following)

    def _read_out(
        self, output_xDh: jax.Array, context_xDh: jax.Array, words_xD: jax.Array
    ) -> jax.Array:
        return jnp.tanh(
            self.readout(jnp.concatenate([output_xDh, context_xDh, words_xD], axis=-1))
        )
