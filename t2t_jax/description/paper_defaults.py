"""The paper's value of each configuration key whose other values depart from it."""

from __future__ import annotations

from typing import Any, NamedTuple


class PaperDefault(NamedTuple):
    """A key that departs from the paper if its value is not `faithful`.

    Attributes:
      key: of the configuration; `network.` stands for the section of the architecture.
      faithful: the paper's value, or the usual one if the paper does not mention it.
      here: what other values do; a format string with the value as {0}.
    """

    key: str
    faithful: Any
    name: str
    paper: str
    here: str


PAPER_DEFAULTS = (
    PaperDefault(
        "architecture",
        "transformer",
        "recurrent baseline",
        "attention only (§3); compared with LSTMs (Table 1)",
        "bidirectional LSTM encoder, LSTM decoder, additive attention",
    ),
    PaperDefault(
        "network.norm_position",
        "post",
        "pre-norm",
        "LayerNorm(x + Sublayer(x)) (§3.1)",
        "x + Sublayer(LayerNorm(x)), and one more norm after each stack",
    ),
    PaperDefault(
        "network.attention_dropout",
        0.0,
        "attention dropout",
        "none on attention weights (§5.4)",
        "{0:g}",
    ),
    PaperDefault(
        "network.relu_dropout",
        0.0,
        "ReLU dropout",
        "none inside the feed-forward networks (§5.4)",
        "{0:g}",
    ),
    PaperDefault(
        "network.positions",
        "sinusoidal",
        "scale of learned positions",
        "initialisation and scale unspecified (Table 3 (E))",
        "as tokens are, one table for each stack",
    ),
    PaperDefault(
        "network.tying",
        "all",
        "tying",
        "one matrix for source, target and pre-softmax (§3.4)",
        "model.tying={0}",
    ),
    PaperDefault(
        "network.activation",
        "relu",
        "activation",
        "max(0, x) (§3.3, equation 2)",
        "{0}",
    ),
    PaperDefault(
        "network.attention_biases",
        False,
        "biases of attention",
        "projections W^Q, W^K, W^V and W^O only (§3.2.2)",
        "each projection has a bias",
    ),
    PaperDefault(
        "network.output_bias",
        False,
        "bias of the logits",
        "the matrix of the embeddings only (§3.4)",
        "a bias for each word",
    ),
    PaperDefault(
        "network.scale_embeddings",
        True,
        "scale of embeddings",
        "times sqrt(d_model) (§3.4)",
        "not multiplied",
    ),
    PaperDefault(
        "network.first_position",
        0,
        "first position",
        "unspecified (§3.5); 0 in the authors' code",
        "{0}",
    ),
    PaperDefault(
        "network.start",
        "bos",
        "first input of the decoder",
        "unspecified (Figure 1: outputs shifted right)",
        "{0} in place of bos",
    ),
    PaperDefault(
        "network.layer_norm_epsilon",
        1e-6,
        "epsilon of the norms",
        "unspecified; 1e-6 in the authors' code",
        "{0:g}",
    ),
    PaperDefault(
        "network.compute_dtype",
        "auto",
        "precision",
        "unspecified; by default bfloat16 on GPUs and TPUs, float32 on CPUs",
        "activations in {0}; parameters, softmax and norms in float32",
    ),
    PaperDefault(
        "vocabulary.source_size",
        0,
        "separate vocabularies",
        "one of both languages (§5.1)",
        "{0:,} pieces of the source's own",
    ),
    PaperDefault(
        "vocabulary.unit",
        "subwords",
        "words instead of subwords",
        "byte-pair encoding (§5.1); of trees unspecified (§6.3)",
        "{0}",
    ),
    PaperDefault(
        "vocabulary.source_unit",
        "subwords",
        "words of the source",
        "byte-pair encoding (§5.1); for parsing 16K and 32K tokens (§6.3)",
        "{0}, unknown ones by classes",
    ),
    PaperDefault(
        "vocabulary.byte_fallback",
        False,
        "byte fallback",
        "unspecified (§5.1)",
        "characters without a piece are spelt in bytes",
    ),
    PaperDefault(
        "data.max_length_ratio",
        0.0,
        "pairs of unlike length",
        "unspecified",
        "a pair with a side over {0:g} times the other is left out",
    ),
    PaperDefault("data.drop_copies", False, "copies", "unspecified", "left out"),
    PaperDefault(
        "data.drop_duplicates", False, "duplicates", "unspecified", "left out"
    ),
    PaperDefault(
        "data.source_bpe_dropout",
        0.0,
        "BPE-dropout of sources",
        "one segmentation of each word (§5.1)",
        "merges are skipped with probability {0:g}, anew in each epoch",
    ),
    PaperDefault(
        "data.target_bpe_dropout",
        0.0,
        "BPE-dropout of targets",
        "one segmentation of each word (§5.1)",
        "merges are skipped with probability {0:g}, anew in each epoch",
    ),
    PaperDefault(
        "training.simcut",
        0.0,
        "SimCut",
        "cross-entropy with label smoothing (§5.4)",
        "plus {0:g} times the divergence from a pass with tokens cut off",
    ),
    PaperDefault(
        "training.r_drop",
        0.0,
        "R-Drop",
        "cross-entropy with label smoothing (§5.4)",
        "of two passes, plus {0:g} times half their divergence",
    ),
    PaperDefault(
        "training.gradient_dtype",
        "float32",
        "gradients between devices",
        "unspecified (§5.2)",
        "rounded to {0} before they are added up",
    ),
    PaperDefault(
        "training.skip_gradient_norm",
        0.0,
        "large gradients",
        "every step makes its update (§5.3)",
        "no update where the gradient's norm is above {0:g}",
    ),
    PaperDefault(
        "optimizer.warmup_steps", 4000, "warm-up", "4,000 steps (§5.3)", "{0:,}"
    ),
    PaperDefault("optimizer.beta1", 0.9, "Adam's beta1", "0.9 (§5.3)", "{0:g}"),
    PaperDefault("optimizer.beta2", 0.98, "Adam's beta2", "0.98 (§5.3)", "{0:g}"),
    PaperDefault("optimizer.epsilon", 1e-9, "Adam's epsilon", "1e-9 (§5.3)", "{0:g}"),
    PaperDefault("optimizer.weight_decay", 0.0, "weight decay", "none (§5.3)", "{0:g}"),
    PaperDefault(
        "training.ema_decay",
        0.0,
        "moving average",
        "none; the last checkpoints are averaged (§6.1)",
        "of the parameters, with decay {0:g}, is the model",
    ),
    PaperDefault("decoding.beam_size", 4, "beam", "4 (§6.1)", "{0}"),
    PaperDefault("decoding.length_penalty", 0.6, "alpha", "0.6 (§6.1)", "{0:g}"),
    PaperDefault(
        "decoding.length_normalization",
        "paper",
        "length penalty",
        "((5 + n) / 6)^alpha (§6.1, reference [38])",
        "n^alpha",
    ),
    PaperDefault(
        "decoding.beam_rule",
        "fixed",
        "width of the beam",
        "unspecified (§6.1)",
        "each finished output takes a place of the beam",
    ),
    PaperDefault(
        "decoding.max_extra_tokens",
        50,
        "longest output",
        "source + 50 (§6.1)",
        "source + {0}",
    ),
    PaperDefault(
        "decoding.max_length_ratio",
        0.0,
        "longest output by ratio",
        "source + 50 (§6.1)",
        "also at most {0:g} times the source",
    ),
    PaperDefault("decoding.min_tokens", 0, "shortest output", "no bound (§6.1)", "{0}"),
    PaperDefault(
        "decoding.allow_unk", True, "unk", "not mentioned (§6.1)", "never generated"
    ),
    PaperDefault(
        "decoding.constraint",
        "none",
        "constraint on outputs",
        "none (§6.1, §6.3)",
        "each is one {0} over the words of the source",
    ),
    PaperDefault("decoding.sample", False, "search", "beam search (§6.1)", "sampling"),
    PaperDefault(
        "init_from",
        "",
        "initial parameters",
        "random",
        "those of {0}",
    ),
    PaperDefault(
        "training.frozen",
        "",
        "frozen parameters",
        "none",
        "{0}",
    ),
    PaperDefault(
        "evaluation.patience",
        0,
        "early stopping",
        "a fixed number of steps (§5.2)",
        "after {0} evaluations without a better development BLEU",
    ),
)
