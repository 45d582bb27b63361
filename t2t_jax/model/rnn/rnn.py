"""The recurrent baseline, with which the paper compares the Transformer."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.functional.masks import segments_of
from t2t_jax.functional.shapes import check_axes
from t2t_jax.model.config import RNNConfig, require_config
from t2t_jax.model.defaults import dropout_rows
from t2t_jax.model.embedding import (
    Embedding,
    Head,
    TokenCutoff,
    declare_matrices,
)
from t2t_jax.model.rnn.decoder import AttendedMemory, RNNDecoder, States
from t2t_jax.model.rnn.layers import RNNEncoder, empty_state
from t2t_jax.types import BOS, EOS, Array


class RNN(nn.Module):
    """A recurrent encoder-decoder: scores each target word given those before it.

    A bidirectional LSTM encodes the source; an LSTM with additive attention decodes. It
    takes the same arguments as `Transformer`, and has its attributes; positions are
    ignored, since the order is that of reading.

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
    head: Head = Embedding.logits
    cutoff: float = 0.0

    def __post_init__(self) -> None:
        """Checks the type of the configuration.

        Raises:
          TypeError: it is not an `RNNConfig`.
        """
        require_config(self.config, RNNConfig, caller="RNN")
        super().__post_init__()

    def setup(self) -> None:
        """Declares encoder, decoder and the vocabulary matrices."""
        declare_matrices(self, self.config)
        self.source_cutoff = TokenCutoff(self.cutoff, spared=EOS)
        self.target_cutoff = TokenCutoff(self.cutoff, spared=BOS)
        self.encoder = RNNEncoder(self.config)
        self.decoder = RNNDecoder(self.config)

    def __call__(
        self,
        source: Array,
        target_inputs: Array,
        *,
        source_segments: Array | None = None,
        target_segments: Array | None = None,
        source_positions: Array | None = None,
        target_positions: Array | None = None,
        rows: Array | None = None,
        deterministic: bool = True,
    ) -> jax.Array:
        """Computes the logits of every target position, given the tokens before it.

        Args:
          source: [B, S] source tokens.
          target_inputs: [B, T] target tokens, shifted right: bos first.
          source_segments: [B, S] segment numbers from 1, 0 is padding; None: 1 for
            tokens. The tokens of a segment are adjacent.
          target_segments: [B, T] segments; a pair shares its number.
          rows: [B] global row numbers for dropout; None: 0 to B - 1.
          deterministic: False applies dropout, with the "dropout" key of
            `apply(…, rngs=…)`.

        Returns:
          logits: [B, T, V] float32.

        Raises:
          ValueError: the shapes do not agree.
        """
        check_axes(
            source_positions=(source_positions, "BxS"),
            target_positions=(target_positions, "BxT"),
            source=(source, "BxS"),
            target_inputs=(target_inputs, "BxT"),
        )
        if source_segments is None:
            source_segments = segments_of(source)
        memory_BxSxDh = self.encode(
            source,
            source_segments=source_segments,
            rows=rows,
            deterministic=deterministic,
        )
        return self.decode(
            target_inputs,
            memory_BxSxDh,
            source_segments=source_segments,
            target_segments=target_segments,
            rows=rows,
            deterministic=deterministic,
        )

    def encode(
        self,
        source: Array,
        *,
        source_segments: Array | None = None,
        rows: Array | None = None,
        deterministic: bool = True,
    ) -> jax.Array:
        """Encodes the source; the arguments are those of `__call__`.

        Returns:
          memory: [B, S, Dh] in the compute dtype.

        Raises:
          ValueError: the shapes do not agree.
        """
        check_axes(
            source=(source, "BxS"),
            source_segments=(source_segments, "BxS"),
            rows=(rows, "B"),
        )
        if source_segments is None:
            source_segments = segments_of(source)
        rows_B = dropout_rows(source, rows, deterministic=deterministic)
        return self.encoder(
            self.source_cutoff(self.source_embedding(source), source, rows_B),
            segments_BxS=source_segments,
            rows_B=rows_B,
        )

    def decode(
        self,
        target_inputs: Array,
        memory: Array,
        *,
        source_segments: Array,
        target_segments: Array | None = None,
        rows: Array | None = None,
        deterministic: bool = True,
    ) -> jax.Array:
        """Computes the logits of the target given the memory.

        The other arguments are those of `__call__`.

        Returns:
          logits: [B, T, V] float32.

        Raises:
          ValueError: the shapes do not agree.
        """
        check_axes(
            target_inputs=(target_inputs, "BxT"),
            memory=(memory, f"BxSx{self.config.d_hidden}"),
            source_segments=(source_segments, "BxS"),
            target_segments=(target_segments, "BxT"),
            rows=(rows, "B"),
        )
        if target_segments is None:
            target_segments = segments_of(target_inputs)
        rows_B = dropout_rows(target_inputs, rows, deterministic=deterministic)
        x_BxTxD = self.target_embedding(target_inputs)
        y_BxTxD = self.decoder(
            self.target_cutoff(x_BxTxD, target_inputs, rows_B),
            self.decoder.project_memory(jnp.asarray(memory), source_segments),
            segments_BxT=target_segments,
            rows_B=rows_B,
        )
        logits: jax.Array = self.head(self.pre_softmax, y_BxTxD)
        return logits

    def init_states(self, batch: int, *, num_beams: int = 1) -> States:
        """Returns the initial states: zeros [B, W, Dh] for every layer."""
        config = self.config
        shape = (batch, num_beams, config.d_hidden)
        return tuple(empty_state(shape) for _ in range(config.num_layers))

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
        y_BxWxD, states = self.decoder.step(
            self.target_embedding(tokens), memory, states
        )
        return self.pre_softmax.logits(y_BxWxD), states
