"""Counts parameters and FLOPs by formula, without a model.

The counts are exact for this package's Transformer; they give the last column of the
paper's Table 3 and the "training cost" of its Table 2.
"""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.model.config import GATED, TransformerConfig, decoder_layers


class ParameterCount(NamedTuple):
    """Numbers of parameters.

    Attributes:
      embedding: the vocabulary's matrices, and learned positions if there are any.
    """

    embedding: int
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        """Parameters of the complete model."""
        return sum(self)


class FlopCount(NamedTuple):
    """Floating-point operations; a multiplication and its addition are two.

    Attributes:
      feed_forward: §3.3, in both stacks.
      projections: W^Q, W^K, W^V and W^O, in all three attentions (§3.2.2).
      scores: Q K^T and the weighted sum of values (§3.2.1).
      logits: the pre-softmax linear transformation (§3.4).
      recomputed: what `model.remat` computes again in the backward pass.
    """

    feed_forward: float
    projections: float
    scores: float
    logits: float
    recomputed: float = 0.0

    @property
    def total(self) -> float:
        """FLOPs of the complete step."""
        return sum(self)


def count_parameters(config: TransformerConfig) -> ParameterCount:
    """Counts the parameters of a model; shared matrices count once.

    Paper: Table 3, last column.

    Example:
      >>> count_parameters(TransformerConfig())
      ParameterCount(embedding=18944000, encoder=18902016, decoder=25199616)
      >>> round(count_parameters(TransformerConfig()).total / 1e6)
      63
    """
    d_model, d_ff = config.d_model, config.d_ff
    width = config.num_heads * (config.d_k + config.d_v)
    attention = 2 * d_model * width
    if config.attention_biases:
        attention += width + config.num_heads * config.d_k + d_model
    feed_forward = _matrices(config) * d_model * d_ff
    if config.activation not in GATED:
        feed_forward += d_ff + d_model
    norm = d_model if config.norm == "rms" else 2 * d_model
    final_norm = norm if config.norm_position == "pre" else 0
    ids = {"all": 1, "decoder": 1, "none": 2}[config.tying] * config.vocab_size
    if config.tying != "all":
        ids += config.source_vocab_size or config.vocab_size
    if config.positions == "learned":
        ids += 2 * (config.max_positions + config.first_position)
    return ParameterCount(
        embedding=ids * d_model + config.output_bias * config.vocab_size,
        encoder=config.num_layers * (attention + feed_forward + 2 * norm) + final_norm,
        decoder=decoder_layers(config) * (2 * attention + feed_forward + 3 * norm)
        + final_norm,
    )


def training_flops(
    config: TransformerConfig, *, source_length: float, target_length: float
) -> FlopCount:
    """Counts the FLOPs of training on one sentence pair, forward and backward.

    Matrix products only: they are all but a thousandth. The backward pass costs two
    forward passes, and with `remat` what is computed again. Scores are counted for
    every pair of positions, as they are computed; causality would halve a third of 1 %.

    Returns:
      The numbers, by part; divided by the length, those of a pair of tokens.

    Paper: Table 2, "Training Cost (FLOPs)"; there estimated from time and hardware.

    Example:
      >>> flops = training_flops(
      ...     TransformerConfig(), source_length=28, target_length=28
      ... )
      >>> f"{flops.total / 28:.3e}"
      '3.810e+08'
    """
    heads, d_model = config.num_heads, config.d_model
    of_encoder, of_decoder = config.num_layers, decoder_layers(config)
    positions = of_encoder * source_length + of_decoder * target_length
    # A weight is used once per position that it is applied to: W^Q and W^O for
    # queries, W^K and W^V for keys and values.
    queries = positions + of_decoder * target_length
    keys = positions + of_decoder * source_length
    half_attention = d_model * heads * (config.d_k + config.d_v)
    pairs = of_encoder * source_length**2
    pairs += of_decoder * (target_length**2 + target_length * source_length)
    products = FlopCount(
        feed_forward=positions * _matrices(config) * d_model * config.d_ff,
        projections=(queries + keys) * half_attention,
        scores=pairs * heads * (config.d_k + config.d_v),
        logits=target_length * d_model * config.vocab_size,
    )
    # All of a layer but the keys and values of the memory, which are computed outside,
    # and with pre-norm the last product, on which no gradient depends.
    share = 1 - (config.norm_position == "pre") / _matrices(config)
    recomputed = config.remat * (
        share * products.feed_forward
        + products.projections
        - of_decoder * source_length * half_attention
        + products.scores
    )
    forward_and_backward, multiply_and_add = 3, 2
    counted = (n * forward_and_backward * multiply_and_add for n in products[:4])
    return FlopCount(*counted)._replace(recomputed=recomputed * multiply_and_add)


def _matrices(config: TransformerConfig) -> int:
    """Returns the number of matrices of a feed-forward network, of one size."""
    return 3 if config.activation in GATED else 2
