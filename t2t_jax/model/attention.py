"""Multi-head attention (§3.2.2 of the paper): owns W^Q, W^K, W^V and W^O."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from flax import linen as nn

from t2t_jax.functional.attention import attention, attention_weights
from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.functional.fused_attention import FUSED, fits
from t2t_jax.functional.masks import Segments
from t2t_jax.functional.rotary import rotate
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.initializers import declare, glorot_uniform, zeros
from t2t_jax.model.past import KVPair, LayerPast, Position
from t2t_jax.model.sublayer import Dropout
from t2t_jax.types import Array


class Projection(nn.Module):
    """A linear map between the model's width and the heads.

    Attributes:
      equation: of the product. Heads come out as [B, H, L, Dk]: batched matrix
        products over the last two axes are 5 times as fast on a CPU as [B, L, H, Dk].
      has_bias: False in the paper.
    """

    shape: tuple[int, ...]
    num_inputs: int
    equation: str
    has_bias: bool = False

    def setup(self) -> None:
        """Declares `kernel`, whose fans count all heads together, and `bias`."""
        glorot = glorot_uniform(self.num_inputs, len(self.shape) - self.num_inputs)
        self.kernel = declare(self, "kernel", glorot, self.shape)
        if self.has_bias:
            self.bias = declare(self, "bias", zeros, self.shape[self.num_inputs :])

    def __call__(self, x: jax.Array) -> jax.Array:
        """Multiplies by the kernel, and adds the bias, in the dtype of `x`."""
        return self._add_bias(einsum_f32(self.equation, x, self.kernel))

    def of_position(self, x_BxWxD: jax.Array) -> jax.Array:
        """Splits one position of each beam into heads: [B, H, W, Dk].

        The same numbers as `__call__`, as one product of two matrices: XLA computes the
        transpose of the equation's, and transposes the kernel for it at every step.
        """
        d_model, heads, d_k = self.kernel.shape
        kernel_DxHDk = self.kernel.reshape(d_model, heads * d_k)
        y_BWxHDk = einsum_f32("nd,dc->nc", x_BxWxD.reshape(-1, d_model), kernel_DxHDk)
        y_BxWxHxDk = y_BWxHDk.reshape(*x_BxWxD.shape[:2], heads, d_k)
        return self._add_bias(y_BxWxHxDk.swapaxes(1, 2))

    def _add_bias(self, y: jax.Array) -> jax.Array:
        if not self.has_bias:
            return y
        bias = self.bias if self.bias.ndim == 1 else self.bias[:, None]  # [H, 1, Dk]
        return y + jnp.broadcast_to(bias, y.shape).astype(y.dtype)


class MultiHeadAttention(nn.Module):
    """Computes Concat(head_1, ..., head_h) W^O, head_i = Attention(QW_i, KW_i, VW_i).

    Concatenation and W^O are one product, summed over heads and depth.

    Paper: §3.2.2.

    Departs:
      With `attention_biases` each of the four projections has a bias. With
      `positions="rotary"` queries and keys of self-attention are rotated by their
      positions; those of cross-attention are not, as their positions are of two
      sentences.
    """

    config: TransformerConfig

    def setup(self) -> None:
        """Declares the four projections."""
        config = self.config
        d_model, heads = config.d_model, config.num_heads
        d_k, d_v = config.d_k, config.d_v
        split, biases = "bld,dhk->bhlk", config.attention_biases
        self.query = Projection((d_model, heads, d_k), 1, split, biases)
        self.key = Projection((d_model, heads, d_k), 1, split, biases)
        self.value = Projection((d_model, heads, d_v), 1, split, biases)
        self.output = Projection((heads, d_v, d_model), 2, "bhlk,hkd->bld", biases)
        self.dropout = Dropout(config.attention_dropout)

    def keys_values(
        self, x_BxKxD: jax.Array, rotated_BxK: Array | None = None
    ) -> KVPair:
        """Projects [B, K, D] to keys [B, H, K, Dk] and values [B, H, K, Dv].

        Args:
          rotated_BxK: the positions by which the keys are rotated; None: they are not.
        """
        keys_BxHxKxDk = self.key(x_BxKxD)
        if rotated_BxK is not None:
            keys_BxHxKxDk = rotate(keys_BxHxKxDk, rotated_BxK)
        return KVPair(keys_BxHxKxDk, self.value(x_BxKxD))

    def __call__(
        self,
        x_BxQxD: jax.Array,
        keys_values: KVPair,
        *,
        segments: Segments,
        rows_B: Array | None,
        rotated_BxQ: Array | None = None,
    ) -> jax.Array:
        """Applies attention: [B, Q, D].

        Sows the weights [B, H, Q, K] into "intermediates" if it is mutable.

        Args:
          rotated_BxQ: the positions by which the queries are rotated; None: they are
            not.
        """
        q_BxHxQxDk, (keys, values) = self.query(x_BxQxD), keys_values
        if rotated_BxQ is not None:
            q_BxHxQxDk = rotate(q_BxHxQxDk, rotated_BxQ)
        if self.is_mutable_collection("intermediates"):
            weights = attention_weights(q_BxHxQxDk, keys, mask_xQxK=segments.mask())
            self.sow("intermediates", "weights", weights)
        fused = FUSED.get(self.config.attention)
        has_dropout = rows_B is not None and self.config.attention_dropout > 0
        if fused and not has_dropout and fits(q_BxHxQxDk, values):
            context_BxHxQxDv = fused(q_BxHxQxDk, keys, values, segments)
        else:
            dropout = functools.partial(self.dropout, rows_B=rows_B)
            context_BxHxQxDv = attention(
                q_BxHxQxDk, keys, values, mask_xQxK=segments.mask(), dropout=dropout
            )
        return self.output(context_BxHxQxDv)

    def attend_to_memory(
        self, x_BxWxD: jax.Array, memory: KVPair, *, mask_Bx1x1xS: jax.Array
    ) -> jax.Array:
        """Attends from each beam's newest position to the source: [B, W, D].

        Args:
          memory: keys [B, H, Dk, S] and values [B, H, S, Dv].
        """
        keys = memory.keys.swapaxes(2, 3)  # no copy, see CrossKV.transposed
        context_BxHxWxDv = attention(
            self.query.of_position(x_BxWxD), keys, memory.values, mask_xQxK=mask_Bx1x1xS
        )
        return self.output(context_BxHxWxDv)

    def step(
        self, x_BxWxD: jax.Array, past: LayerPast, position: Position
    ) -> tuple[jax.Array, LayerPast]:
        """Attends from a position of each beam to it and to the beam's own past.

        Returns:
          output: [B, W, D].
          past: with this position.
        """
        keys = self._of_position(self.key, x_BxWxD, position)
        past = past.append(keys, self.value.of_position(x_BxWxD), position)
        queries = self._of_position(self.query, x_BxWxD, position)
        context_BxHxWxDv = past.attend(queries, position)
        return self.output(context_BxHxWxDv), past

    def _of_position(
        self, projection: Projection, x_BxWxD: jax.Array, position: Position
    ) -> jax.Array:
        """Projects queries or keys of one position, rotated if configured."""
        y_BxHxWxDk = projection.of_position(x_BxWxD)
        if self.config.positions != "rotary":
            return y_BxHxWxDk
        return rotate(y_BxHxWxDk, jnp.full((1, 1), position.number))
