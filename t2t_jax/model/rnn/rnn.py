"""The recurrent baseline, with which the paper compares the Transformer."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from t2t_jax.functional.shapes import check_axes
from t2t_jax.model.config import RNNConfig
from t2t_jax.model.rnn.decoder import AttendedMemory, RNNDecoder, States
from t2t_jax.model.rnn.layers import RNNEncoder, empty_state
from t2t_jax.model.step_model import BoundModel
from t2t_jax.model.transformer import EncoderDecoder
from t2t_jax.types import Array


class RNN(EncoderDecoder):
    """A recurrent encoder-decoder: scores each target word given those before it.

    A bidirectional LSTM encodes the source; an LSTM with additive attention decodes. It
    takes the same arguments as `Transformer`; the tokens of a segment are adjacent, and
    positions are ignored, since the order is that of reading.

    Paper:
      Table 1, row "Recurrent". §1: recurrent models "generate a sequence of hidden
      states h_t, as a function of the previous hidden state h_{t-1} and the input for
      position t", which "precludes parallelization within training examples".

    Departs:
      The paper prints results of others' recurrent models and describes none; this one
      follows its reference [2] with the paper's embeddings, dropout and loss. The
      decoder starts from zeros, not from the encoder's last state.

    Example:
      >>> config = RNNConfig(
      ...     vocab_size=11, num_layers=1, d_model=4, d_hidden=6, d_attention=5
      ... )
      >>> source, target_inputs = jnp.array([[5, 7, 2]]), jnp.array([[1, 6, 8, 9]])
      >>> model = RNN(config)
      >>> params = model.init(jax.random.key(0), source, target_inputs)["params"]
      >>> model.apply({"params": params}, source, target_inputs).shape
      (1, 4, 11)
    """

    config: RNNConfig
    config_type = RNNConfig

    def setup(self) -> None:
        """Declares encoder, decoder and the vocabulary matrices."""
        self._declare_frame()
        self.encoder = RNNEncoder(self.config)
        self.decoder = RNNDecoder(self.config)

    @property
    def _memory_width(self) -> int:
        """Dh."""
        return self.config.d_hidden

    def init_states(self, batch: int, *, num_beams: int = 1) -> States:
        """Returns the initial states: zeros [B, W, Dh] for every layer."""
        shape = (batch, num_beams, self.config.d_hidden)
        return tuple(empty_state(shape) for _ in range(self.config.num_layers))

    def step(
        self, tokens: Array, memory: AttendedMemory, states: States
    ) -> tuple[jax.Array, States]:
        """Decodes one token of every beam, an incremental `decode`.

        Returns:
          logits: [B, W, V] float32.
          states: after these tokens.

        Raises:
          ValueError: the shapes do not agree.
        """
        check_axes(states=(states[0][0], "BxWxDh"), tokens=(tokens, "BxW"))
        words_BxWxD = self.target_embedding(tokens)
        y_BxWxD, states = self.decoder.step(words_BxWxD, memory, states)
        return self.head(self.pre_softmax, y_BxWxD), states


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RNNStepModel(BoundModel):
    """The recurrent model, bound to its parameters; its cache does not grow."""

    def init_cache(self, memory: AttendedMemory, num_beams: int, length: int) -> States:
        """Returns zeros [B, W, Dh], two for each layer; `length` is unused."""
        batch = memory.segments.shape[0]  # symbolic in an export
        states: States = self.model.init_states(batch, num_beams=num_beams)
        return states

    def step(
        self, tokens_BxW: Array, memory: AttendedMemory, cache: States, position: Array
    ) -> tuple[jax.Array, States]:
        """Decodes one token of every beam.

        Returns:
          logits: [B, W, V] float32, of the next token.
          cache: the states after it.
        """
        logits_BxWxV, states = self._apply("step", tokens_BxW, memory, cache)
        return logits_BxWxV, states

    def reorder(self, cache: States, parents_BxW: Array) -> States:
        """Gathers the states of the beams `parents_BxW` of each sentence.

        Args:
          parents_BxW: [B, W] beam numbers; W may differ from the cache's.
        """
        index_BxWx1 = jnp.asarray(parents_BxW)[:, :, None]
        reordered: States = jax.tree.map(
            lambda x_BxWxDh: jnp.take_along_axis(x_BxWxDh, index_BxWx1, axis=1), cache
        )
        return reordered

    def grow(self, cache: States, length: int) -> States:
        """Returns the cache unchanged: its size does not depend on `length`."""
        return cache
