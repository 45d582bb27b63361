"""The hyper-parameters of the Transformer: the columns of the paper's Table 3."""

from __future__ import annotations

import math
from dataclasses import dataclass

from t2t_jax.errors import Problems

CHOICES = {
    "norm_position": ("post", "pre"),
    "positions": ("sinusoidal", "learned"),
    "tying": ("all", "decoder", "none"),
    "compute_dtype": ("float32", "bfloat16"),
}
"""The words that a key may hold."""

_SIZES = (
    "vocab_size",
    "num_layers",
    "d_model",
    "d_ff",
    "num_heads",
    "d_k",
    "d_v",
    "max_positions",
)
_LARGEST = 1_000_000
"""Of every size: what is beyond is a slip of the finger, and no machine holds it."""

_RATES = ("dropout", "attention_dropout", "relu_dropout")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """What makes one Transformer differ from another; the defaults: the paper's base.

    Attributes:
      vocab_size: V, subwords shared by source and target.
      num_layers: N, layers of the encoder, and of the decoder.
      d_model: width of embeddings and of every sub-layer's output.
      d_ff: inner width of the feed-forward networks.
      num_heads: h, attention heads.
      d_k: depth of a head's queries and keys. In the paper d_model / h, but Table 3 (B)
        changes it alone, so it is free.
      d_v: depth of a head's values; free as well.
      dropout: P_drop, on each sub-layer's output and on embedding + position.
      attention_dropout: on attention weights; 0 in the paper.
      relu_dropout: inside the feed-forward networks; 0 in the paper.
      norm_position: "post", LayerNorm(x + Sublayer(x)), or "pre",
        x + Sublayer(LayerNorm(x)) with one more norm after each stack.
      positions: "sinusoidal" or "learned" (Table 3 (E)).
      max_positions: positions that a learned table holds, one table for each stack; no
        sentence may be longer. Sinusoids have no limit and leave it unused.
      tying: which of the three vocabulary matrices are one: "all" of source, target and
        pre-softmax; "decoder", target and pre-softmax; "none".
      layer_norm_epsilon: added to the variance.
      compute_dtype: "float32" or "bfloat16", of activations. Parameters, softmax,
        statistics and logits are float32 always.

    Raises:
      ConfigError: rules are broken; it names them all.

    Paper:
      Table 3, §3, §5.4.

    Departs:
      `norm_position="pre"`, the two dropouts at 0, learned positions scaled and
      initialised as embeddings are (the paper does not say), and `tying` other than
      "all" are not in the paper; none is the default.
    """

    vocab_size: int = 37_000
    num_layers: int = 6
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    d_k: int = 64
    d_v: int = 64
    dropout: float = 0.1
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    norm_position: str = "post"
    positions: str = "sinusoidal"
    max_positions: int = 512
    tying: str = "all"
    layer_norm_epsilon: float = 1e-6
    compute_dtype: str = "float32"

    def __post_init__(self) -> None:
        problems = Problems()
        for name in _SIZES:
            self._check_size(problems, name)
        for name in _RATES:
            self._check_rate(problems, name)
        for name, known in CHOICES.items():
            word = getattr(self, name)
            problems.require(
                word in known,
                f"model.{name}={word!r} is not known; known are "
                f"{', '.join(map(repr, known))}. Change config.model.{name}.",
            )
        epsilon = self.layer_norm_epsilon
        problems.require(
            _is_number(epsilon) and 0 < epsilon < math.inf,
            f"model.layer_norm_epsilon={epsilon!r} must be a positive number. "
            "Change config.model.layer_norm_epsilon.",
        )
        problems.require(
            self.positions != "sinusoidal"
            or not _is_size(self.d_model)
            or self.d_model % 2 == 0,
            f"model.d_model={self.d_model} must be even: sinusoidal positions are "
            "pairs of a sine and a cosine (§3.5). Change config.model.d_model.",
        )
        problems.raise_if_any()

    def _check_size(self, problems: Problems, name: str) -> None:
        size = getattr(self, name)
        problems.require(
            _is_size(size),
            f"model.{name}={size!r} must be a whole number from 1 to {_LARGEST:,}. "
            f"Change config.model.{name}.",
        )

    def _check_rate(self, problems: Problems, name: str) -> None:
        rate = getattr(self, name)
        # A comparison with NaN is False, so NaN is refused here as well.
        problems.require(
            _is_number(rate) and 0 <= rate < 1,
            f"model.{name}={rate!r} must be in [0, 1): it is the probability of being "
            f"dropped (§5.4). Change config.model.{name}.",
        )


def _is_size(value: object) -> bool:
    """Tells a whole number within bounds; True and 8.0 are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return 1 <= value <= _LARGEST


def _is_number(value: object) -> bool:
    """Tells an int or a float from anything else; True is neither."""
    return isinstance(value, int | float) and not isinstance(value, bool)
