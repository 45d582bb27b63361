"""Counts parameters and FLOPs by formula, without a model.

The counts are exact for this package's models; the Transformer's give the last column
of the paper's Table 3 and the "training cost" of its Table 2.
"""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.model.config import (
    GATED,
    ModelConfig,
    RNNConfig,
    TransformerConfig,
    decoder_layers,
)

_MULTIPLY_AND_ADD = 2
_PER_PRODUCT = 3 * _MULTIPLY_AND_ADD
"""Operations of a product: the backward pass has two of them."""


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


def count_parameters(config: ModelConfig) -> ParameterCount:
    """Counts the parameters of a model; shared matrices count once.

    Of the recurrent baseline the attention counts as the decoder's.

    Paper: Table 3, last column.

    Example:
      >>> count_parameters(TransformerConfig())
      ParameterCount(embedding=18944000, encoder=18902016, decoder=25199616)
      >>> round(count_parameters(TransformerConfig()).total / 1e6)
      63
      >>> count_parameters(RNNConfig())
      ParameterCount(embedding=18944000, encoder=10493952, decoder=21242368)
    """
    if isinstance(config, RNNConfig):
        return _count_rnn_parameters(config)
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
    ids = _vocabulary_rows(config)
    if config.positions == "learned":
        ids += 2 * (config.max_positions + config.first_position)
    return ParameterCount(
        embedding=ids * d_model + config.output_bias * config.vocab_size,
        encoder=config.num_layers * (attention + feed_forward + 2 * norm) + final_norm,
        decoder=decoder_layers(config) * (2 * attention + feed_forward + 3 * norm)
        + final_norm,
    )


def training_flops(
    config: ModelConfig, *, source_length: float, target_length: float
) -> dict[str, float]:
    """Counts the FLOPs of training on one sentence pair, forward and backward.

    Matrix products only: they are all but a thousandth. The backward pass costs two
    forward passes, and with `remat` what is computed again. Scores are counted for
    every pair of positions, as they are computed; causality would halve a third of 1 %.

    Returns:
      The numbers, by part; divided by the length, those of a pair of tokens. A
      multiplication and its addition are two. Of a Transformer they are
      `feed_forward`, in both stacks; `projections` of all three attentions, to heads
      and from them; `scores`, Q K^T and the weighted sum of values; `logits`; and
      what is `recomputed`. Of the recurrent baseline: `lstms`, input and state into
      the four gates, in both stacks; `attention`, without its additions and its tanh;
      the `readout`, the projection to the input of the logits; and `logits`.

    Paper: Table 2, "Training Cost (FLOPs)"; there estimated from time and hardware.

    Example:
      >>> flops = training_flops(
      ...     TransformerConfig(), source_length=28, target_length=28
      ... )
      >>> f"{sum(flops.values()) / 28:.3e}"
      '3.810e+08'
    """
    if isinstance(config, RNNConfig):
        return _rnn_training_flops(config, source_length, target_length)
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
    products = {
        "feed_forward": positions * _matrices(config) * d_model * config.d_ff,
        "projections": (queries + keys) * half_attention,
        "scores": pairs * heads * (config.d_k + config.d_v),
        "logits": target_length * d_model * config.vocab_size,
    }
    # All of a layer but the keys and values of the memory, which are computed outside,
    # and with pre-norm the last product, on which no gradient depends.
    share = 1 - (config.norm_position == "pre") / _matrices(config)
    recomputed = config.remat * (
        share * products["feed_forward"]
        + products["projections"]
        - of_decoder * source_length * half_attention
        + products["scores"]
    )
    counted = {part: _PER_PRODUCT * number for part, number in products.items()}
    return {**counted, "recomputed": _MULTIPLY_AND_ADD * recomputed}


def _vocabulary_rows(config: ModelConfig) -> int:
    """Counts the rows of all matrices of the vocabularies."""
    rows = {"all": 1, "decoder": 1, "none": 2}[config.tying] * config.vocab_size
    if config.tying != "all":
        rows += config.source_vocab_size or config.vocab_size
    return rows


def _matrices(config: TransformerConfig) -> int:
    """Returns the number of matrices of a feed-forward network, of one size."""
    return 3 if config.activation in GATED else 2


def _count_rnn_parameters(config: RNNConfig) -> ParameterCount:
    d_model, d_hidden = config.d_model, config.d_hidden
    encoder, decoder = _lstm_weights(config)
    biases = 4 * d_hidden * config.num_layers
    attention = (2 * d_hidden + 1) * config.d_attention
    readout = (2 * d_hidden + d_model) * d_model
    return ParameterCount(
        embedding=_vocabulary_rows(config) * d_model,
        encoder=encoder + biases,
        decoder=decoder + biases + attention + readout,
    )


def _rnn_training_flops(
    config: RNNConfig, source_length: float, target_length: float
) -> dict[str, float]:
    """Counts the FLOPs of the recurrent baseline.

    Paper: Table 1: O(n d^2) operations a layer, n of them one after the other.
    """
    d_model, d_hidden = config.d_model, config.d_hidden
    encoder, decoder = _lstm_weights(config)
    projected = (source_length + target_length) * d_hidden * config.d_attention
    pairs = source_length * target_length
    products = {
        "lstms": source_length * encoder + target_length * decoder,
        "attention": projected + pairs * (config.d_attention + d_hidden),
        "readout": target_length * (2 * d_hidden + d_model) * d_model,
        "logits": target_length * d_model * config.vocab_size,
    }
    return {part: _PER_PRODUCT * number for part, number in products.items()}


def _lstm_weights(config: RNNConfig) -> tuple[int, int]:
    """Counts the entries of all gates' matrices: (encoder, decoder)."""
    d_model, d_hidden, above = config.d_model, config.d_hidden, config.num_layers - 1
    half = d_hidden // 2
    first_encoder = 2 * 4 * half * (d_model + half)
    encoder_above = 2 * 4 * half * (d_hidden + half)
    first_decoder = 4 * d_hidden * (d_model + d_hidden + d_hidden)
    decoder_above = 4 * d_hidden * (d_hidden + d_hidden)
    return first_encoder + above * encoder_above, first_decoder + above * decoder_above
