"""Configuration of both models: the Transformer's fields are Table 3's columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from t2t_jax.errors import ErrorCollector, checked, one_of

GATED = ("swiglu", "geglu")
"""The values of `activation` with a gate."""

BLOCKS = {"norm": ("rms",), "activation": GATED, "positions": ("rotary",)}
"""The values of keys that name a block of later Transformers than the paper's."""

_LARGEST = 1_000_000
"""Limit of every size: no machine has the memory for more."""

MOST_LAYERS = 1_000
"""Limit of layers per stack: the compiler takes minutes for far fewer."""


def require_config(config: object, wanted: type, *, caller: str) -> None:
    """Checks the type of a module's configuration.

    Raises:
      TypeError: it is not a `wanted`.
    """
    if not isinstance(config, wanted):
        name = wanted.__name__
        raise TypeError(
            f"config of {caller} must be of type {name}, not "
            f"{type(config).__name__}. Pass {name}(vocab_size=…)."
        )


def _check_common(config: Any, section: str) -> ErrorCollector:
    """Checks the fields by themselves, and the vocabularies."""
    problems = ErrorCollector(section, config)
    problems.check(
        config.source_vocab_size == 0 or config.tying != "all",
        f"{section}.tying='all' needs one vocabulary of both sides, but the source has "
        f"its own. Change config.{section}.tying, or config.vocabulary.source_size.",
    )
    return problems


def is_size(value: object, *, least: int = 1, most: int = _LARGEST) -> bool:
    """Returns whether a value is a whole number within bounds; True and 8.0 are not."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return least <= value <= most


def _is_even(size: Any) -> bool:
    """Returns whether a size is even; of others, another rule is broken."""
    return not is_size(size) or size % 2 == 0


def is_number(value: object) -> bool:
    """Returns whether a value is an int or a float; True is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(default: int, *, least: int = 1, most: int = _LARGEST) -> Any:
    """Makes a field for a whole number within bounds."""
    rule = f"be a whole number from {least} to {most:,}"
    return checked(default, rule, partial(is_size, least=least, most=most))


def rate(default: float) -> Any:
    """Makes a field for a dropout rate."""
    rule = "be in [0, 1): it is the probability of being dropped (§5.4)"
    # Comparisons with NaN are False, so NaN fails as well.
    return checked(default, rule, lambda x: is_number(x) and 0 <= x < 1)


def _is_positive(value: Any) -> bool:
    return is_number(value) and 0 < value < math.inf


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Configuration of a Transformer; the defaults are the paper's base model.

    Attributes:
      vocab_size (subwords): V, of the target, and of the source if they are shared.
      source_vocab_size (subwords): Size of a separate source vocabulary; 0, as in the
        paper, for a shared one.
      num_layers (layers): N, layers of the encoder, and of the decoder; at most 1,000.
      num_decoder_layers (layers): Layers of the decoder; 0 for N, as in the paper.
      d_model (units): Width of the embeddings and of every sub-layer's output.
      d_ff (units): Inner width of the feed-forward networks, of a gated one of its
        three matrices; 2/3 of it give that as many parameters as two matrices have.
      num_heads (heads): h, attention heads.
      d_k (units): Width of the queries and keys of a head. In the paper d_model / h;
        Table 3 (B) varies only this, so it is a separate field.
      d_v (units): Width of the values of a head; free as well.
      dropout (probability): P_drop, on each sub-layer's output and on the sums of
        embeddings and positions.
      attention_dropout (probability): Dropout on attention weights; 0 in the paper.
      relu_dropout (probability): Dropout inside the feed-forward networks; 0 in the
        paper.
      norm: What every norm computes: "layer", layer normalization, as in the paper; or
        "rms", x / RMS(x) with a scale and without mean and bias (Zhang and Sennrich,
        2019).
      norm_position: Where the norms are, of either kind: after each sub-layer,
        LayerNorm(x + Sublayer(x)), or before it, x + Sublayer(LayerNorm(x)) with one
        more norm after each stack.
      positions: Positional encoding: sinusoids, or learned as in Table 3 (E), which are
        added to the embeddings; or "rotary", which adds nothing there, and rotates the
        queries and keys of self-attention (Su et al., 2021). Their `d_k` is even, and
        they have no longest sentence but that of `data` and `decoding`.
      max_positions (tokens): Size of a learned position table; there is one for each
        stack, and no sentence may be longer. Unused by other positions.
      tying: Which vocabulary matrices are shared: "all" of source, target and
        pre-softmax; "decoder" for target and pre-softmax; or "none".
      layer_norm_epsilon (constant): Added to the variance in layer normalization, and
        to the mean square with `norm` "rms".
      compute_dtype: Type of activations and of the factors of matrix products; "auto"
        is bfloat16 on GPUs, on TPUs, and on CPUs that multiply it (AVX512_BF16, AMX),
        and float32 elsewhere. A training on CPUs keeps what it began with, and begins
        in float32 if it has several processes. Parameters, gradients, sums, softmax,
        statistics and logits are always float32.
      remat: Whether to recompute layers in the backward pass instead of storing their
        activations: the same numbers with less memory (not on CPUs) and more time.
      attention: What computes equation 1 in training: "plain" matrix products; "cudnn",
        NVIDIA's fused kernel, on GPUs from Ampere on; "splash", JAX's kernel for TPUs;
        or "auto", in a run the kernel that the device has, else "plain". A kernel is
        replaced by "plain" with float32 activations, with attention dropout, and with
        heads whose `d_k` differs from `d_v`, exceeds 128 or is not a multiple of 8. On
        TPUs it is also replaced on a mesh with `fsdp` or `tensor`. On GPUs it is
        replaced on a mesh with `data` and one of these two, and kept on a mesh of
        `data` alone. If a kernel was named, a line of the log tells why it was
        replaced. config.json names a kernel that was used; a kernel has no second
        derivative. Rows whose length is no multiple of 128, and decoding, are always
        "plain".
      activation: Of the feed-forward networks: "relu", max(0, x), as in the paper;
        "swish", x sigmoid(x); "gelu", x Phi(x); or "quick_gelu", x sigmoid(1.702 x).
        "swiglu" and "geglu" are networks with a gate, (swish(x W) * x V) W2, and gelu
        in place of swish, without biases (Shazeer, 2020).
      attention_biases: Whether the projections of attention have biases; not in the
        paper.
      output_bias: Whether the logits have a bias, one number for each word; not in the
        paper.
      scale_embeddings: Whether embeddings are multiplied by sqrt(d_model), as in the
        paper.
      position_rates: Rates of the sinusoids: "paper", 10000^(-2i / d_model), or
        "tensor2tensor", 10000^(-i / (d_model / 2 - 1)), as in that program, Marian and
        fairseq. Unused by learned positions.
      first_position (positions): Number of a sentence's first position; 2 in models of
        fairseq. A table of learned positions has as many rows more.
      start: The decoder's input at the first position: the vector of "bos" or of "eos",
        or "zero" for a vector of zeros.
      tag_position: Where the first token of a source is, which has its language: at the
        "first" position, or at the "last", after its eos, as NLLB-200 was at first.

    Raises:
      ConfigError: values are invalid; the message lists all.

    Paper: Table 3, §3, §5.4.

    Departs:
      `norm_position="pre"`, the two dropouts at 0, learned positions scaled and
      initialised as embeddings are (the paper does not say), and `tying` other than
      "all" are not in the paper; none is the default. The last eight keys and
      `num_decoder_layers` are those of other toolkits' models.
    """

    vocab_size: int = whole(37_000)
    source_vocab_size: int = whole(0, least=0)
    num_layers: int = whole(6, most=MOST_LAYERS)
    d_model: int = whole(512)
    d_ff: int = whole(2048)
    num_heads: int = whole(8)
    d_k: int = whole(64)
    d_v: int = whole(64)
    dropout: float = rate(0.1)
    attention_dropout: float = rate(0.0)
    relu_dropout: float = rate(0.0)
    norm: str = one_of("layer", "rms")
    norm_position: str = one_of("post", "pre")
    positions: str = one_of("sinusoidal", "learned", "rotary")
    max_positions: int = whole(512)
    tying: str = one_of("all", "decoder", "none")
    layer_norm_epsilon: float = checked(1e-6, "be a positive number", _is_positive)
    compute_dtype: str = one_of("auto", "float32", "bfloat16")
    remat: bool = one_of(False, True)
    attention: str = one_of("auto", "plain", "cudnn", "splash")
    num_decoder_layers: int = whole(0, least=0, most=MOST_LAYERS)
    activation: str = one_of("relu", "swish", "gelu", "quick_gelu", *GATED)
    attention_biases: bool = one_of(False, True)
    output_bias: bool = one_of(False, True)
    scale_embeddings: bool = one_of(True, False)
    position_rates: str = one_of("paper", "tensor2tensor")
    first_position: int = whole(0, least=0, most=1_000)
    start: str = one_of("bos", "zero", "eos")
    tag_position: str = one_of("first", "last")

    def __post_init__(self) -> None:
        problems = _check_common(self, "model")
        if self.positions == "sinusoidal":
            rule = "be even: sinusoidal positions are pairs of a sine and a cosine"
            problems.of(f"{rule} (§3.5)", _is_even, "d_model")
        if self.positions == "rotary":
            self._check_rotary(problems)
        problems.raise_if_any()

    def _check_rotary(self, problems: ErrorCollector) -> None:
        """Checks that heads have pairs, and keys of added positions no other value."""
        rule = "be even: rotary positions turn pairs of components"
        problems.of(rule, _is_even, "d_k")
        for name in ("max_positions", "position_rates", "first_position"):
            problems.used(name, "positions", is_used=False)


@dataclass(frozen=True, kw_only=True)
class RNNConfig:
    """Configuration of the recurrent baseline.

    A bidirectional LSTM encoder and an LSTM decoder with additive attention, the kind
    of model with which the paper compares the Transformer.

    Attributes:
      vocab_size (subwords): V, as in `TransformerConfig`.
      source_vocab_size (subwords): Size of a separate source vocabulary; 0 for a shared
        one.
      num_layers (layers): LSTM layers of the encoder (each in both directions), and of
        the decoder; at most 1,000.
      d_model (units): Width of the embeddings and of the input of the logits.
      d_hidden (units): Width of a decoder LSTM; each direction of the encoder has half.
      d_attention (units): Width in which decoder state and memory are compared.
      dropout (probability): Dropout on embeddings, between layers and before the
        logits.
      tying: Which vocabulary matrices are shared: "all" of source, target and
        pre-softmax; "decoder" for target and pre-softmax; or "none".
      compute_dtype: Type of activations; "auto" as `model.compute_dtype`. The states
        of the LSTMs are float32.

    Raises:
      ConfigError: values are invalid; the message lists all.

    Paper: Table 1, row "Recurrent"; its reference [2] for the attention.
    """

    vocab_size: int = whole(37_000)
    source_vocab_size: int = whole(0, least=0)
    num_layers: int = whole(2, most=MOST_LAYERS)
    d_model: int = whole(512)
    d_hidden: int = whole(1024)
    d_attention: int = whole(512)
    dropout: float = rate(0.1)
    tying: str = one_of("all", "decoder", "none")
    compute_dtype: str = one_of("auto", "float32", "bfloat16")

    def __post_init__(self) -> None:
        problems = _check_common(self, "rnn")
        rule = "be even: half of it goes to each direction of the encoder"
        problems.of(rule, _is_even, "d_hidden")
        problems.raise_if_any()


ModelConfig: TypeAlias = TransformerConfig | RNNConfig
"""The configurations that `t2t_jax.model.architectures` can build."""


def decoder_layers(config: ModelConfig) -> int:
    """Returns the number of decoder layers.

    Example:
      >>> decoder_layers(TransformerConfig(num_layers=6))
      6
      >>> decoder_layers(TransformerConfig(num_layers=6, num_decoder_layers=2))
      2
    """
    own = config.num_decoder_layers if isinstance(config, TransformerConfig) else 0
    return own or config.num_layers
