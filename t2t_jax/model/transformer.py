"""The Transformer: the paper's Figure 1, one module for training and decoding."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.functional.masks import segments_of
from t2t_jax.functional.shapes import check_axes
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.config import TransformerConfig, require_config
from t2t_jax.model.decoder import Decoder
from t2t_jax.model.defaults import compute_dtype, dropout_rows
from t2t_jax.model.embedding import Embedding, Head, TokenCutoff
from t2t_jax.model.encoder import Encoder
from t2t_jax.model.feed_forward import FeedForward
from t2t_jax.model.past import Cache, empty_past
from t2t_jax.model.sublayer import Block
from t2t_jax.types import BOS, EOS, Array


class EncoderDecoder(nn.Module):
    """The frame of both models: arguments, vocabulary matrices, and what is omitted.

    A subclass declares this frame, `encoder` and `decoder` in its `setup`.

    Attributes:
      head: computes the output from the pre-softmax matrix and the decoder's output;
        by default the logits.
      cutoff: probability with which the embedding of a token is zeroed, where there is
        dropout; see `TokenCutoff`.
    """

    config: Any
    head: Head = Embedding.logits
    cutoff: float = 0.0

    config_type: ClassVar[type] = object

    def __post_init__(self) -> None:
        """Checks the type of the configuration.

        Raises:
          TypeError: it is of another one.
        """
        require_config(self.config, self.config_type, caller=type(self).__name__)
        super().__post_init__()

    def _declare_frame(self, *, scaled: bool = True, has_bias: bool = False) -> None:
        """Declares the vocabulary matrices: one, two or three.

        A single one is the parameter `embedding`.

        Args:
          scaled: whether embeddings are multiplied by sqrt(d_model).
          has_bias: whether the logits have a bias.

        Paper: §3.4; a single matrix by default.
        """
        config, target = self.config, self.config.vocab_size
        dtype = compute_dtype(config)
        new = functools.partial(
            Embedding, d_model=config.d_model, dtype=dtype, scaled=scaled
        )
        if config.tying == "all":
            self.embedding = new(target, has_bias=has_bias)
            self.source_embedding = self.target_embedding = self.embedding
        else:
            self.source_embedding = new(config.source_vocab_size or target)
            of_logits = has_bias and config.tying == "decoder"
            self.target_embedding = new(target, has_bias=of_logits)
        if config.tying == "none":
            self.pre_softmax = new(target, has_bias=has_bias)
        else:
            self.pre_softmax = self.target_embedding
        self.source_cutoff = TokenCutoff(self.cutoff, spared=EOS)
        self.target_cutoff = TokenCutoff(self.cutoff, spared=BOS)

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
          source_segments: [B, S] segment numbers from 1, 0 is padding. By default 1 for
            tokens and 0 for pad.
          target_segments: [B, T] segments; a pair shares its number.
          source_positions: [B, S] position inside the segment, from 0; by default 0 to
            S - 1. The recurrent baseline ignores positions: the order is that of
            reading.
          target_positions: [B, T] positions; by default 0 to T - 1.
          rows: [B] global row numbers for dropout; by default 0 to B - 1.
          deterministic: False applies dropout, with the "dropout" key of
            `apply(…, rngs=…)`.

        Returns:
          logits: [B, T, V] float32.

        Raises:
          ValueError: the shapes do not agree.
        """
        if source_segments is None:
            source_segments = segments_of(source)
        memory_BxSxx = self.encode(
            source,
            source_segments=source_segments,
            source_positions=source_positions,
            rows=rows,
            deterministic=deterministic,
        )
        return self.decode(
            target_inputs,
            memory_BxSxx,
            source_segments=source_segments,
            target_segments=target_segments,
            target_positions=target_positions,
            rows=rows,
            deterministic=deterministic,
        )

    def encode(
        self,
        source: Array,
        *,
        source_segments: Array | None = None,
        source_positions: Array | None = None,
        rows: Array | None = None,
        deterministic: bool = True,
    ) -> jax.Array:
        """Encodes the source: the left half of Figure 1.

        The arguments are those of `__call__`.

        Returns:
          memory: [B, S, D], of the recurrent baseline [B, S, Dh]; in the compute dtype.

        Raises:
          ValueError: the shapes do not agree.
        """
        check_axes(
            source=(source, "BxS"),
            source_segments=(source_segments, "BxS"),
            source_positions=(source_positions, "BxS"),
            rows=(rows, "B"),
        )
        if source_segments is None:
            source_segments = segments_of(source)
        rows_B = dropout_rows(source, rows, deterministic=deterministic)
        memory_BxSxx: jax.Array = self.encoder(
            self.source_cutoff(self.source_embedding(source), source, rows_B),
            segments_BxS=source_segments,
            positions_BxS=source_positions,
            rows_B=rows_B,
        )
        return memory_BxSxx

    def decode(
        self,
        target_inputs: Array,
        memory: Array,
        *,
        source_segments: Array,
        target_segments: Array | None = None,
        target_positions: Array | None = None,
        rows: Array | None = None,
        deterministic: bool = True,
    ) -> jax.Array:
        """Computes the logits given the memory: the right half of Figure 1.

        The other arguments are those of `__call__`.

        Args:
          memory: from `encode`.
          source_segments: [B, S] as for `encode`; required, since the source tokens are
            not an argument.

        Returns:
          logits: [B, T, V] float32.

        Raises:
          ValueError: the shapes do not agree.
        """
        check_axes(
            target_inputs=(target_inputs, "BxT"),
            memory=(memory, f"BxSx{self._memory_width}"),
            source_segments=(source_segments, "BxS"),
            target_segments=(target_segments, "BxT"),
            target_positions=(target_positions, "BxT"),
            rows=(rows, "B"),
        )
        if target_segments is None:
            target_segments = segments_of(target_inputs)
        rows_B = dropout_rows(target_inputs, rows, deterministic=deterministic)
        x_BxTxD = self._embed_targets(target_inputs)
        y_BxTxD = self.decoder(
            self.target_cutoff(x_BxTxD, target_inputs, rows_B),
            self.decoder.project_memory(jnp.asarray(memory), source_segments),
            segments_BxT=target_segments,
            positions_BxT=target_positions,
            rows_B=rows_B,
        )
        logits: jax.Array = self.head(self.pre_softmax, y_BxTxD)
        return logits

    @property
    def _memory_width(self) -> int:
        """The width of the encoder's output."""
        return int(self.config.d_model)

    def _embed_targets(self, tokens_BxT: Array) -> jax.Array:
        """Embeds target tokens: [B, T, D]."""
        return self.target_embedding(tokens_BxT)


class Transformer(EncoderDecoder):
    """The Transformer: scores each target word given source and previous words.

    Tokens are integers, pad = 0. Rows hold one sentence each, or several, separated by
    `segments`.

    Attributes:
      head: computes the output from the pre-softmax matrix and the decoder's output;
        by default the logits.
      cutoff: probability with which the embedding of a token is zeroed, where there is
        dropout; see `TokenCutoff`.
      attention: class of the attentions; one with other formulas has the methods of
        `MultiHeadAttention`. Without a `step` and an `attend_to_memory` of its own it
        is searched by `decode`.
      feed_forward: class of the feed-forward networks: it is made with the
        configuration, and called with [B, L, D] and the rows of `dropout`, which are
        None without dropout. Its positions must not depend on one another.

    Paper: Figure 1, §3, and the dropout of §5.4.

    Departs:
      With `start` other than "bos" another vector stands for bos, wherever it occurs in
      a row. For the other keys that depart see `TransformerConfig`.

    Example:
      >>> config = TransformerConfig(
      ...     vocab_size=11, num_layers=1, d_model=4, d_ff=8, num_heads=2, d_k=2, d_v=2
      ... )
      >>> source, target_inputs = jnp.array([[5, 7, 2]]), jnp.array([[1, 6, 8, 9]])
      >>> model = Transformer(config)
      >>> params = model.init(jax.random.key(0), source, target_inputs)["params"]
      >>> model.apply({"params": params}, source, target_inputs).shape
      (1, 4, 11)
    """

    config: TransformerConfig
    attention: Block = MultiHeadAttention
    feed_forward: Block = FeedForward

    config_type = TransformerConfig

    def setup(self) -> None:
        """Declares both stacks and the vocabulary matrices."""
        config = self.config
        self._declare_frame(scaled=config.scale_embeddings, has_bias=config.output_bias)
        self.encoder = Encoder(config, self.attention, self.feed_forward)
        self.decoder = Decoder(config, self.attention, self.feed_forward)

    def init_cache(
        self, memory: Array, source_segments: Array, *, num_beams: int = 1, length: int
    ) -> Cache:
        """Allocates the cache for decoding step by step, one sentence per row.

        Args:
          source_segments: [B, S] 1 for tokens, 0 for padding.
          length: capacity in target positions.

        Raises:
          ValueError: the shapes do not agree, or there are fewer learned positions than
            `length`.
        """
        check_axes(
            memory=(memory, f"BxSx{self.config.d_model}"),
            source_segments=(source_segments, "BxS"),
        )
        batch = memory.shape[0]
        past = empty_past(self.config, batch, num_beams=num_beams, length=length)
        projected = self.decoder.project_memory(jnp.asarray(memory), source_segments)
        return Cache(projected.transposed(), past)

    def step(
        self, tokens: Array, cache: Cache, position: Array | int
    ) -> tuple[jax.Array, Cache]:
        """Decodes one token of every beam, an incremental `decode`.

        Args:
          tokens: [B, W] the tokens at `position`; bos at position 0.
          cache: from `init_cache`, or from the previous step.
          position: scalar integer, one more at each step; it may be traced. It must be
            below the cache's length: beyond, the last position is overwritten.

        Returns:
          logits: [B, W, V] float32, for the token at `position` + 1.
          cache: with this position added.

        Raises:
          ValueError: the shapes do not agree.
        """
        past = cache.past
        own = past.layers[0].keys, "BxHxWxLxDk"
        check_axes(
            memory=(cache.memory.segments, "BxS"),
            cache=own if past.ancestors is None else (past.ancestors, "BxWxL"),
            tokens=(tokens, "BxW"),
        )
        y_BxWxD, cache = self.decoder.step(
            self._embed_targets(tokens), cache, jnp.asarray(position)
        )
        return self.head(self.pre_softmax, y_BxWxD), cache

    def _embed_targets(self, tokens_BxT: Array) -> jax.Array:
        """Embeds target tokens, and what stands for bos in other toolkits."""
        if self.config.start == "eos":
            tokens_BxT = jnp.where(tokens_BxT == BOS, EOS, tokens_BxT)
        x_BxTxD = super()._embed_targets(tokens_BxT)
        if self.config.start == "zero":
            x_BxTxD = jnp.where((tokens_BxT == BOS)[..., None], 0, x_BxTxD)
        return x_BxTxD
