"""The frame of every sub-layer: residual connection, dropout, layer normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
from flax import linen as nn

from t2t_jax.functional.dropout import dropout
from t2t_jax.functional.layer_norm import layer_norm
from t2t_jax.functional.rms_norm import rms_norm
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.initializers import declare, ones, zeros
from t2t_jax.types import Array

Block: TypeAlias = Callable[[TransformerConfig], Any]
"""Makes the module of a sub-layer from the configuration, as its class does."""


class Norm(nn.Module):
    """Scale and bias of one `functional.layer_norm`, or scale of one `rms_norm`.

    Paper: §3.1.

    Departs: With `norm="rms"` vectors are not centered, and there is no bias.
    """

    config: TransformerConfig

    def setup(self) -> None:
        """Declares `scale` and `bias`, [D]."""
        shape = (self.config.d_model,)
        self.scale = declare(self, "scale", ones, shape)
        if self.config.norm == "layer":
            self.bias = declare(self, "bias", zeros, shape)

    def __call__(self, x_xD: jax.Array) -> jax.Array:
        """Normalizes the last axis."""
        epsilon = self.config.layer_norm_epsilon
        if self.config.norm == "rms":
            return rms_norm(x_xD, self.scale, epsilon=epsilon)
        return layer_norm(x_xD, self.scale, bias_D=self.bias, epsilon=epsilon)


class Dropout(nn.Module):
    """One dropout site; its path in the module tree makes its masks distinct."""

    rate: float

    def __call__(self, x_Bx: jax.Array, rows_B: Array | None) -> jax.Array:
        """Applies dropout with the "dropout" key of `apply(…, rngs=…)`: [B, ...].

        Args:
          rows_B: [B] global row numbers; None: no dropout (deterministic).
        """
        if rows_B is None or self.rate == 0:
            return x_Bx
        key = self.make_rng("dropout")  # Linen folds this module's path into it.
        return dropout(x_Bx, rate=self.rate, key=key, rows_B=rows_B)


class AddAndNorm(nn.Module):
    """The box "Add & Norm" of Figure 1, with the dropout of §5.4.

    Paper:
      §3.1, "LayerNorm(x + Sublayer(x))"; §5.4, dropout "to the output of each
      sub-layer, before it is added to the sub-layer input and normalized".

    Departs: `norm_position="pre"` normalizes the input of the sub-layer instead.
    """

    config: TransformerConfig

    def setup(self) -> None:
        """Declares the norm, whose parameters are this module's own."""
        self.norm = Norm(self.config)
        self.dropout = Dropout(self.config.dropout)
        # Paths read `self_attention_norm/scale`, not `self_attention_norm/norm/scale`.
        nn.share_scope(self, self.norm)

    def __call__(
        self,
        x_BxLxD: jax.Array,
        sublayer: Callable[[jax.Array], jax.Array],
        *,
        rows_B: Array | None,
    ) -> jax.Array:
        """Computes LayerNorm(x + Dropout(Sublayer(x))): [B, L, D]."""
        if self.config.norm_position == "pre":
            return x_BxLxD + self.dropout(sublayer(self.norm(x_BxLxD)), rows_B)
        return self.norm(x_BxLxD + self.dropout(sublayer(x_BxLxD), rows_B))
