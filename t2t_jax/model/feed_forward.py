"""The position-wise feed-forward network (§3.3 of the paper)."""

from __future__ import annotations

import functools

import jax
from flax import linen as nn

from t2t_jax.functional.feed_forward import feed_forward
from t2t_jax.functional.gated_feed_forward import gated_feed_forward
from t2t_jax.model.config import GATED, TransformerConfig
from t2t_jax.model.initializers import declare, glorot_uniform, zeros
from t2t_jax.model.sublayer import Dropout
from t2t_jax.types import Array


class Affine(nn.Module):
    """One W and b of equation 2."""

    shape: tuple[int, int]
    has_bias: bool = True

    def setup(self) -> None:
        """Declares `kernel` and `bias`."""
        self.kernel = declare(self, "kernel", glorot_uniform(), self.shape)
        if self.has_bias:
            self.bias = declare(self, "bias", zeros, self.shape[1:])


class FeedForward(nn.Module):
    """Computes max(0, x W1 + b1) W2 + b2, or (act(x W) * x V) W2.

    Paper: §3.3, equation 2.

    Departs: `activation` may be another than max(0, x), or that of a gate.
    """

    config: TransformerConfig

    def setup(self) -> None:
        """Declares W1 and b1 (`inner`), W2 and b2 (`outer`).

        Of a gated network W (`gate`), V (`inner`) and W2 (`outer`): two matrices in
        place of one twice as wide, so that each is split, and orthogonalized, alone.
        """
        d_model, d_ff = self.config.d_model, self.config.d_ff
        is_gated = self.config.activation in GATED
        if is_gated:
            self.gate = Affine((d_model, d_ff), has_bias=False)
        self.inner = Affine((d_model, d_ff), has_bias=not is_gated)
        self.outer = Affine((d_ff, d_model), has_bias=not is_gated)
        self.dropout = Dropout(self.config.relu_dropout)

    def __call__(self, x_BxLxD: jax.Array, rows_B: Array | None) -> jax.Array:
        """Applies the network to every position: [B, L, D] -> [B, L, D]."""
        activation = self.config.activation
        dropout = functools.partial(self.dropout, rows_B=rows_B)
        if activation in GATED:
            return gated_feed_forward(
                x_BxLxD,
                w_DxF=self.gate.kernel,
                v_DxF=self.inner.kernel,
                w2_FxD=self.outer.kernel,
                activation=activation,
                dropout=dropout,
            )
        return feed_forward(
            x_BxLxD,
            w1_DxF=self.inner.kernel,
            b1_F=self.inner.bias,
            w2_FxD=self.outer.kernel,
            b2_D=self.outer.bias,
            dropout=dropout,
            activation=activation,
        )
