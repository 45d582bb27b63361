"""The recurrent decoder: an LSTM with additive attention.

Besides the letters of `t2t_jax.types`, `Dh` is d_hidden; `Dk` is d_attention here.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.functional.attention import additive_attention_weights
from t2t_jax.functional.masks import segment_mask
from t2t_jax.model.attention import Projection
from t2t_jax.model.config import RNNConfig
from t2t_jax.model.defaults import compute_dtype
from t2t_jax.model.initializers import declare, normal
from t2t_jax.model.rnn.layers import LSTM, State, empty_state, scan_rows
from t2t_jax.model.sublayer import Dropout
from t2t_jax.types import Array

States: TypeAlias = tuple[State, ...]
"""The state of each layer of the decoder."""


class AttentionOutput(NamedTuple):
    """The output of the attentive layer, for every position or beam.

    Attributes:
      output: [..., Dh] of the LSTM.
      context: [..., Dh] the attention's output.
      weights: [..., S] float32, attention weights.
    """

    output: jax.Array
    context: jax.Array
    weights: jax.Array


class AttendedMemory(NamedTuple):
    """The memory, projected once for each sentence.

    Attributes:
      keys: [B, S, Dk] in the compute dtype.
      values: [B, S, Dh] in the compute dtype.
      segments: [B, S] the source's segment numbers.
    """

    keys: jax.Array
    values: jax.Array
    segments: jax.Array


class AdditiveAttention(nn.Module):
    """Attends to the memory with softmax(v^T tanh(W q + U k))."""

    config: RNNConfig

    def setup(self) -> None:
        """Declares W (`query`), U (`key`) and v (`score`)."""
        d_hidden, d_attention = self.config.d_hidden, self.config.d_attention
        self.query = Projection((d_hidden, d_attention), 1, "...h,hk->...k")
        self.key = Projection((d_hidden, d_attention), 1, "...h,hk->...k")
        self.score = declare(self, "score", normal(d_attention**-0.5), (d_attention,))

    def __call__(
        self, output_BxWxDh: jax.Array, memory: AttendedMemory, mask_BxWxS: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Attends from the state of every beam to its sentence's memory.

        Args:
          mask_BxWxS: [B, W, S] True = attends; the W axis may be 1.

        Returns:
          context: [B, W, Dh] in the compute dtype.
          weights: [B, W, S] float32.
        """
        # tanh(W q + U k) is W x S x Dk numbers a step. Recomputing them in the backward
        # pass is cheaper than storing them: 325 against 456 ms for a training step of
        # 64 rows of 64 at Dk = 128 on two CPU cores.
        compute = jax.checkpoint(additive_attention_weights, prevent_cse=False)
        queries_BxWxDk = self.query(output_BxWxDh.astype(memory.keys.dtype))
        weights_BxWxS = compute(
            queries_BxWxDk, memory.keys, score_Dk=self.score, mask_xQxK=mask_BxWxS
        )
        context_BxWxDh = jnp.einsum(
            "bws,bsh->bwh", weights_BxWxS.astype(memory.values.dtype), memory.values
        )
        return context_BxWxDh, weights_BxWxS


class AttentiveLSTM(nn.Module):
    """The decoder's first layer: attends to the source, then reads one word.

    The query is the state before the word is read, as in the first translation models
    with attention. Only this layer is sequential in the attention: the layers above,
    the readout and the logits process all positions at once.
    """

    config: RNNConfig

    def setup(self) -> None:
        """Declares the attention and the LSTM."""
        self.attention = AdditiveAttention(self.config)
        self.lstm = LSTM(self.config.d_hidden, compute_dtype(self.config))

    def __call__(
        self, words_BxTxD: jax.Array, memory: AttendedMemory, segments_BxT: Array
    ) -> AttentionOutput:
        """Processes rows of segments.

        Returns:
          Arrays [B, T, ...].
        """

        def read(
            layer: AttentiveLSTM, state: State, now: tuple[jax.Array, jax.Array]
        ) -> tuple[State, AttentionOutput]:
            word_BxD, mask_BxS = now
            state, attended = layer.step(
                state, word_BxD[:, None], memory, mask_BxWxS=mask_BxS[:, None]
            )
            return state, AttentionOutput(*(x_Bx1[:, 0] for x_Bx1 in attended))

        mask_BxTxS = segment_mask(segments_BxT, memory.segments)
        # One hypothesis a row: the beams' axis of `step` is 1.
        state = empty_state((words_BxTxD.shape[0], 1, self.config.d_hidden))
        attended: AttentionOutput = scan_rows(
            self, read, (words_BxTxD, mask_BxTxS), state, segments_BxT
        )
        return attended

    def step(
        self,
        state: State,
        words_BxWxD: jax.Array,
        memory: AttendedMemory,
        *,
        mask_BxWxS: jax.Array,
    ) -> tuple[State, AttentionOutput]:
        """Processes one word of every beam: the next state, and arrays [B, W, ...]."""
        context_BxWxDh, weights_BxWxS = self.attention(state[1], memory, mask_BxWxS)
        inputs = jnp.concatenate([words_BxWxD, context_BxWxDh], axis=-1)
        state, output_BxWxDh = self.lstm.step(state, inputs)
        return state, AttentionOutput(output_BxWxDh, context_BxWxDh, weights_BxWxS)


class RNNDecoder(nn.Module):
    """Computes the input of the logits from the previous words and the memory."""

    config: RNNConfig

    def setup(self) -> None:
        """Declares the attentive layer, the LSTMs above it, and the readout."""
        config = self.config
        above, dtype = range(config.num_layers - 1), compute_dtype(config)
        self.attentive_layer = AttentiveLSTM(config)
        self.layer = [LSTM(config.d_hidden, dtype) for _ in above]
        self.readout = Projection(
            (2 * config.d_hidden + config.d_model, config.d_model), 1, "...x,xd->...d"
        )
        self.word_dropout = Dropout(config.dropout)
        self.dropout = [Dropout(config.dropout) for _ in above]
        self.readout_dropout = Dropout(config.dropout)

    def project_memory(
        self, memory_BxSxDh: jax.Array, segments_BxS: Array
    ) -> AttendedMemory:
        """Projects the memory [B, S, Dh] to keys, once for all steps."""
        keys_BxSxDk = self.attentive_layer.attention.key(memory_BxSxDh)
        return AttendedMemory(keys_BxSxDk, memory_BxSxDh, jnp.asarray(segments_BxS))

    def __call__(
        self,
        words_BxTxD: jax.Array,
        memory: AttendedMemory,
        *,
        segments_BxT: Array,
        positions_BxT: Array | None = None,
        rows_B: Array | None,
    ) -> jax.Array:
        """Decodes all positions, whose numbers are ignored.

        Sows the attention weights [B, T, S] into "intermediates" if it is mutable.

        Returns:
          [B, T, D] the input of the logits.
        """
        words_BxTxD = self.word_dropout(words_BxTxD, rows_B)
        attended = self.attentive_layer(words_BxTxD, memory, segments_BxT)
        self.sow("intermediates", "weights", attended.weights)
        output_BxTxDh = attended.output
        for dropout, layer in zip(self.dropout, self.layer, strict=True):
            output_BxTxDh = layer(dropout(output_BxTxDh, rows_B), segments_BxT)
        y_BxTxD = self._read_out(output_BxTxDh, attended.context, words_BxTxD)
        return self.readout_dropout(y_BxTxD, rows_B)

    def step(
        self, words_BxWxD: jax.Array, memory: AttendedMemory, states: States
    ) -> tuple[jax.Array, States]:
        """Decodes one word of every beam, with one sentence per row of the memory.

        Args:
          states: [B, W, Dh] before these words.

        Returns:
          y: [B, W, D] the input of the logits.
          states: after these words.
        """
        mask_Bx1xS = (memory.segments > 0)[:, None]
        first, attended = self.attentive_layer.step(
            states[0], words_BxWxD, memory, mask_BxWxS=mask_Bx1xS
        )
        following, output_BxWxDh = [first], attended.output
        for layer, state in zip(self.layer, states[1:], strict=True):
            state, output_BxWxDh = layer.step(state, output_BxWxDh)
            following.append(state)
        y_BxWxD = self._read_out(output_BxWxDh, attended.context, words_BxWxD)
        return y_BxWxD, tuple(following)

    def _read_out(
        self, output_xDh: jax.Array, context_xDh: jax.Array, words_xD: jax.Array
    ) -> jax.Array:
        inputs = jnp.concatenate([output_xDh, context_xDh, words_xD], axis=-1)
        return jnp.tanh(self.readout(inputs))
