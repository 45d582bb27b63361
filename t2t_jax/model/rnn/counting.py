"""Counts the recurrent baseline's parameters and FLOPs by formula."""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.model.config import RNNConfig
from t2t_jax.model.counting import ParameterCount


class RNNFlopCount(NamedTuple):
    """Floating-point operations; a multiplication and its addition are two.

    Attributes:
      lstms: input and state into the four gates, in both stacks.
      attention: W q, U k, the product with v, and the weighted sum of the memory.
      readout: the projection of state, context and word to the input of the logits.
      logits: the pre-softmax linear transformation.
    """

    lstms: float
    attention: float
    readout: float
    logits: float

    @property
    def total(self) -> float:
        """FLOPs of a pair of sentences."""
        return sum(self)


def count_rnn_parameters(config: RNNConfig) -> ParameterCount:
    """Counts the parameters of a model; shared matrices count once.

    The attention counts as the decoder's.

    Example:
      >>> count_rnn_parameters(RNNConfig())
      ParameterCount(embedding=18944000, encoder=10493952, decoder=21242368)
    """
    d_model, d_hidden = config.d_model, config.d_hidden
    target_matrices = {"all": 1, "decoder": 1, "none": 2}[config.tying]
    ids = target_matrices * config.vocab_size
    if config.tying != "all":
        ids += config.source_vocab_size or config.vocab_size
    encoder, decoder = _lstm_weights(config)
    biases = 4 * d_hidden * config.num_layers
    attention = (2 * d_hidden + 1) * config.d_attention
    readout = (2 * d_hidden + d_model) * d_model
    return ParameterCount(
        embedding=ids * d_model,
        encoder=encoder + biases,
        decoder=decoder + biases + attention + readout,
    )


def rnn_training_flops(
    config: RNNConfig, *, source_length: float, target_length: float
) -> RNNFlopCount:
    """Counts the FLOPs of training on one sentence pair, forward and backward.

    Like `training_flops`, it counts matrix products only, and the backward pass as two
    forward passes. The additions and the tanh of the attention are not counted,
    though they are as many as the multiplications with v.

    Args:
      source_length: subwords of the source, or their average.

    Returns:
      The numbers, by part; divided by the length, those of a pair of tokens.

    Paper: Table 1: O(n d^2) operations a layer, n of them one after the other.

    Example:
      >>> flops = rnn_training_flops(RNNConfig(), source_length=28, target_length=28)
      >>> f"{flops.total / 28:.3e}"
      '3.042e+08'
    """
    d_model, d_hidden = config.d_model, config.d_hidden
    encoder, decoder = _lstm_weights(config)
    projected = (source_length + target_length) * d_hidden * config.d_attention
    pairs = source_length * target_length
    products = RNNFlopCount(
        lstms=source_length * encoder + target_length * decoder,
        attention=projected + pairs * (config.d_attention + d_hidden),
        readout=target_length * (2 * d_hidden + d_model) * d_model,
        logits=target_length * d_model * config.vocab_size,
    )
    forward_and_backward, multiply_and_add = 3, 2
    return RNNFlopCount(
        *(n * forward_and_backward * multiply_and_add for n in products)
    )


def _lstm_weights(config: RNNConfig) -> tuple[int, int]:
    """Counts the entries of all gates' matrices: (encoder, decoder)."""
    d_model, d_hidden, above = config.d_model, config.d_hidden, config.num_layers - 1
    half = d_hidden // 2
    first_encoder = 2 * 4 * half * (d_model + half)
    encoder_above = 2 * 4 * half * (d_hidden + half)
    first_decoder = 4 * d_hidden * (d_model + d_hidden + d_hidden)
    decoder_above = 4 * d_hidden * (d_hidden + d_hidden)
    return first_encoder + above * encoder_above, first_decoder + above * decoder_above
