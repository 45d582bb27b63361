"""Vocabulary embeddings (§3.4 of the paper) and positional encodings (§3.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
from flax import linen as nn

from t2t_jax.functional.dropout import token_cutoff
from t2t_jax.functional.embedding import embed, logits
from t2t_jax.functional.positions import sinusoidal_positions
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.defaults import compute_dtype
from t2t_jax.model.initializers import declare, normal, zeros
from t2t_jax.types import Array


class Embedding(nn.Module):
    """An embedding matrix, used for lookups and for logits.

    Attributes:
      num_ids: rows of the matrix: V, or the number of learned positions.
      dtype: of the vectors looked up.
      scaled: whether vectors are multiplied by sqrt(d_model).
      has_bias: whether the logits have a bias.

    Paper:
      §3.4: "we share the same weight matrix between the two embedding layers and the
      pre-softmax linear transformation".

    Departs: Unscaled vectors and a bias, which models of other toolkits have.
    """

    num_ids: int
    d_model: int
    dtype: str
    scaled: bool = True
    has_bias: bool = False

    def setup(self) -> None:
        """Declares `table`, of standard deviation d_model^-0.5, and `bias`."""
        shape = (self.num_ids, self.d_model)
        self.table = declare(self, "table", normal(self.d_model**-0.5), shape)
        self.bias: jax.Array | None = None
        if self.has_bias:
            self.bias = declare(self, "bias", zeros, shape[:1])

    def __call__(self, ids_BxL: Array) -> jax.Array:
        """Looks up ids, times sqrt(d_model) if `scaled`: [B, L] -> [B, L, D]."""
        return embed(ids_BxL, self.table, scaled=self.scaled).astype(self.dtype)

    def logits(self, y_BxLxD: jax.Array) -> jax.Array:
        """Scores every id: [B, L, D] -> [B, L, V] float32."""
        return logits(y_BxLxD, self.table, self.bias)


Head: TypeAlias = Callable[[Embedding, jax.Array], Any]
"""(pre-softmax matrix, decoder output [B, T, D]) -> the model's output."""


class TokenCutoff(nn.Module):
    """Zeroes the vectors of random tokens; one side of the second pass of SimCut.

    Attributes:
      rate: probability of being zeroed; 0 for none.
      spared: id of the tokens that are never zeroed: eos of a source, or bos of a
        target.

    Paper: Gao et al., 2022; see `t2t_jax.functional.consistency_loss`.
    """

    rate: float
    spared: int

    def __call__(
        self, x_BxLxD: jax.Array, ids_BxL: Array, rows_B: Array | None
    ) -> jax.Array:
        """Cuts off tokens with the "dropout" key of `apply(…, rngs=…)`: [B, L, D].

        Args:
          rows_B: [B] global row numbers; None: no cutoff (deterministic).
        """
        if rows_B is None or self.rate == 0:
            return x_BxLxD
        spared_BxL, key = ids_BxL == self.spared, self.make_rng("dropout")
        return token_cutoff(x_BxLxD, spared_BxL, rate=self.rate, key=key, rows_B=rows_B)


class Positions(nn.Module):
    """Adds positional encodings to embeddings.

    Paper: §3.5; learned positions are Table 3 (E).

    Departs:
      The paper does not give the scale or initialization of learned positions: here
      they are those of tokens, with one table for each stack. Other toolkits count from
      `first_position`, or have sinusoids of other `position_rates`. Rotary positions
      are not added here: see `MultiHeadAttention`.
    """

    config: TransformerConfig

    def setup(self) -> None:
        """Declares the table of learned positions, if configured."""
        config = self.config
        if config.positions == "learned":
            self.learned = Embedding(
                config.max_positions + config.first_position,
                config.d_model,
                compute_dtype(config),
                scaled=config.scale_embeddings,
            )

    def __call__(self, x_BxLxD: jax.Array, positions_BxL: Array) -> jax.Array:
        """Adds positions to embeddings: [B, L, D].

        Args:
          positions_BxL: [B, L] position inside the sentence, from 0.
        """
        config = self.config
        if config.positions == "rotary":
            return x_BxLxD
        if config.first_position:
            positions_BxL = positions_BxL + config.first_position
        if config.positions == "learned":
            return x_BxLxD + self.learned(positions_BxL)
        encodings_BxLxD = sinusoidal_positions(
            positions_BxL, config.d_model, rates=config.position_rates
        )
        return x_BxLxD + encodings_BxLxD.astype(x_BxLxD.dtype)
