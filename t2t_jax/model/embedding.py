"""Vocabulary embeddings (§3.4 of the paper) and positional encodings (§3.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.functional.embedding import embed, logits
from t2t_jax.functional.positions import sinusoidal_positions
from t2t_jax.model.config import ModelConfig, TransformerConfig
from t2t_jax.model.defaults import compute_dtype
from t2t_jax.types import Array


class Embedding(nn.Module):
    """An embedding matrix, used for lookups and for logits.

    Paper:
      §3.4: "we share the same weight matrix between the two embedding layers and the
      pre-softmax linear transformation".
    """

    num_ids: int
    d_model: int
    dtype: str

    def setup(self) -> None:
        """Declares `table`, of standard deviation d_model^-0.5."""
        normal = nn.initializers.normal(self.d_model**-0.5)
        shape = (self.num_ids, self.d_model)
        self.table = self.param("table", normal, shape, jnp.float32)

    def __call__(self, ids_BxL: Array) -> jax.Array:
        """Looks up ids, times sqrt(d_model): [B, L] -> [B, L, D]."""
        return embed(ids_BxL, self.table).astype(self.dtype)

    def logits(self, y_BxLxD: jax.Array) -> jax.Array:
        """Scores every id: [B, L, D] -> [B, L, V] float32."""
        return logits(y_BxLxD, self.table)


Head: TypeAlias = Callable[[Embedding, jax.Array], Any]
"""(pre-softmax matrix, decoder output [B, T, D]) -> the model's output."""


def declare_matrices(model: Any, config: ModelConfig) -> None:
    """Declares the vocabulary matrices in a model's `setup`.

    Args:
      model: gets `source_embedding`, `target_embedding` and `pre_softmax`, which are
        one, two or three matrices; a single one is the parameter `embedding`.

    Paper: §3.4; a single matrix by default.
    """
    new = (config.vocab_size, config.d_model, compute_dtype(config))
    if config.tying == "all":
        model.embedding = Embedding(*new)
        model.source_embedding = model.target_embedding = model.embedding
    else:
        source_size = config.source_vocab_size or config.vocab_size
        model.source_embedding = Embedding(source_size, *new[1:])
        model.target_embedding = Embedding(*new)
    if config.tying == "none":
        model.pre_softmax = Embedding(*new)
    else:
        model.pre_softmax = model.target_embedding


class Positions(nn.Module):
    """Adds positional encodings to embeddings.

    Paper: §3.5; learned positions are Table 3 (E).

    Departs:
      The paper does not give the scale or initialization of learned positions: here
      they are those of tokens, with one table for each stack.
    """

    config: TransformerConfig

    def setup(self) -> None:
        """Declares the table of learned positions, if configured."""
        config = self.config
        if config.positions == "learned":
            self.learned = Embedding(
                config.max_positions, config.d_model, compute_dtype(config)
            )

    def __call__(self, x_BxLxD: jax.Array, positions_BxL: Array) -> jax.Array:
        """Adds positions to embeddings: [B, L, D]."""
        if self.config.positions == "learned":
            return x_BxLxD + self.learned(positions_BxL)
        encodings_BxLxD = sinusoidal_positions(positions_BxL, self.config.d_model)
        return x_BxLxD + encodings_BxLxD.astype(x_BxLxD.dtype)
