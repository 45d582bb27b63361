"""The keys that decide, each by itself, whether an experiment is the paper's."""

from __future__ import annotations

from typing import Any, NamedTuple


class Choice(NamedTuple):
    """A key that departs wherever its value is not `faithful`.

    Attributes:
      key: of the configuration; `network.` stands for the section of the architecture.
      faithful: the value that does as the paper says, or as is usual where it is
        silent.
      name: what departs.
      paper: how the paper has it.
      here: how it is with another value; a format, the value being {0}.
    """

    key: str
    faithful: Any
    name: str
    paper: str
    here: str


CHOICES = (
    Choice(
        "architecture",
        "transformer",
        "recurrent baseline",
        "attention alone (§3); LSTMs are what it is compared with (Table 1)",
        "bidirectional LSTM encoder, LSTM decoder, additive attention",
    ),
    Choice(
        "network.norm_position",
        "post",
        "pre-norm",
        "LayerNorm(x + Sublayer(x)) (§3.1)",
        "x + Sublayer(LayerNorm(x)), and one more norm after each stack",
    ),
    Choice(
        "network.attention_dropout",
        0.0,
        "attention dropout",
        "none on attention weights (§5.4)",
        "{0:g}",
    ),
    Choice(
        "network.relu_dropout",
        0.0,
        "ReLU dropout",
        "none inside the feed-forward networks (§5.4)",
        "{0:g}",
    ),
    Choice(
        "network.positions",
        "sinusoidal",
        "scale of learned positions",
        "not said how they are initialised and scaled (Table 3 (E))",
        "as tokens are, one table for each stack",
    ),
    Choice(
        "network.tying",
        "all",
        "tying",
        "one matrix for source, target and pre-softmax (§3.4)",
        "model.tying={0}",
    ),
    Choice(
        "network.layer_norm_epsilon",
        1e-6,
        "epsilon of the norms",
        "not said; 1e-6 in its authors' program",
        "{0:g}",
    ),
    Choice(
        "network.compute_dtype",
        "auto",
        "precision",
        "not said; by default bfloat16 on GPUs and TPUs, float32 on CPUs",
        "activations in {0}; parameters, softmax and norms in float32",
    ),
    Choice(
        "vocabulary.source_size",
        0,
        "separate vocabularies",
        "one of both languages (§5.1)",
        "{0:,} pieces of the source's own",
    ),
    Choice(
        "vocabulary.byte_fallback",
        False,
        "byte fallback",
        "not said (§5.1)",
        "characters without a piece are spelt in bytes",
    ),
    Choice(
        "data.max_length_ratio",
        0.0,
        "pairs of unlike length",
        "not said",
        "a pair with a side over {0:g} times the other is left out",
    ),
    Choice("data.drop_copies", False, "copies", "not said", "left out"),
    Choice("data.drop_duplicates", False, "duplicates", "not said", "left out"),
    Choice(
        "training.gradient_dtype",
        "float32",
        "gradients between devices",
        "not said (§5.2)",
        "rounded to {0} before they are added up",
    ),
    Choice(
        "training.skip_gradient_norm",
        0.0,
        "large gradients",
        "every step makes its update (§5.3)",
        "no update where the gradient's norm is above {0:g}",
    ),
    Choice("optimizer.warmup_steps", 4000, "warm-up", "4,000 steps (§5.3)", "{0:,}"),
    Choice("optimizer.beta1", 0.9, "Adam's beta1", "0.9 (§5.3)", "{0:g}"),
    Choice("optimizer.beta2", 0.98, "Adam's beta2", "0.98 (§5.3)", "{0:g}"),
    Choice("optimizer.epsilon", 1e-9, "Adam's epsilon", "1e-9 (§5.3)", "{0:g}"),
    Choice("decoding.beam_size", 4, "beam", "4 (§6.1)", "{0}"),
    Choice("decoding.length_penalty", 0.6, "alpha", "0.6 (§6.1)", "{0:g}"),
    Choice(
        "decoding.max_extra_tokens",
        50,
        "longest output",
        "source + 50 (§6.1)",
        "source + {0}",
    ),
    Choice("decoding.min_tokens", 0, "shortest output", "no bound (§6.1)", "{0}"),
    Choice("decoding.sample", False, "search", "beam search (§6.1)", "tokens drawn"),
)
"""By section of the configuration, and the architecture first."""
