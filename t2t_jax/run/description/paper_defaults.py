"""The keys of the configuration whose other values depart from the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from t2t_jax.config import Config, flatten, to_dict
from t2t_jax.run.description.parsing import PRINTED


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


# key: name | how the paper has it | what other values do
_TRANSLATION = {
    "architecture": "recurrent baseline | attention only (§3); compared with LSTMs "
    "(Table 1) | bidirectional LSTM encoder, LSTM decoder, additive attention",
    "network.norm": "RMS norm | layer normalization (§3.1) | root mean square norms: "
    "no mean is subtracted, and there is a scale and no bias",
    "network.norm_position": "pre-norm | LayerNorm(x + Sublayer(x)) (§3.1) | x + "
    "Sublayer(LayerNorm(x)), and one more norm after each stack",
    "network.attention_dropout": "attention dropout | none on attention weights (§5.4) "
    "| {0:g}",
    "network.relu_dropout": "ReLU dropout | none inside the feed-forward networks "
    "(§5.4) | {0:g}",
    "network.positions": "kind of positions | sinusoids (§3.5), or learned, of "
    "unspecified initialisation and scale (Table 3 (E)) | {0}",
    "network.tying": "tying | one matrix for source, target and pre-softmax (§3.4) | "
    "model.tying={0}",
    "network.activation": "activation | max(0, x) (§3.3, equation 2) | {0}",
    "network.attention_biases": "biases of attention | projections W^Q, W^K, W^V and "
    "W^O only (§3.2.2) | each projection has a bias",
    "network.output_bias": "bias of the logits | the matrix of the embeddings only "
    "(§3.4) | a bias for each word",
    "network.scale_embeddings": "scale of embeddings | times sqrt(d_model) (§3.4) | "
    "not multiplied",
    "network.first_position": "first position | unspecified (§3.5); 0 in the authors' "
    "code | {0}",
    "network.start": "first input of the decoder | unspecified (Figure 1: outputs "
    "shifted right) | {0} in place of bos",
    "network.tag_position": "position of a source's first token | the first (§3.5) | "
    "the {0}",
    "network.layer_norm_epsilon": "epsilon of the norms | unspecified; 1e-6 in the "
    "authors' code | {0:g}",
    "network.compute_dtype": "precision | unspecified; by default bfloat16 on GPUs, "
    "TPUs and CPUs that multiply it, else float32 | activations in {0}; parameters, "
    "softmax and norms in float32",
    "vocabulary.source_size": "separate vocabularies | one of both languages (§5.1) | "
    "{0:,} pieces of the source's own",
    "vocabulary.unit": "words instead of subwords | byte-pair encoding (§5.1); of "
    "trees unspecified (§6.3) | {0}",
    "vocabulary.source_unit": "words of the source | byte-pair encoding (§5.1); for "
    "parsing 16K and 32K tokens (§6.3) | {0}, unknown ones by classes",
    "vocabulary.byte_fallback": "byte fallback | unspecified (§5.1) | characters "
    "without a piece are spelt in bytes",
    "data.max_length_ratio": "pairs of unlike length | unspecified | a pair with a "
    "side over {0:g} times the other is left out",
    "data.drop_copies": "copies | unspecified | left out",
    "data.drop_duplicates": "duplicates | unspecified | left out",
    "data.filters": "pairs that do not match | unspecified | left out by {0}",
    "data.source_bpe_dropout": "BPE-dropout of sources | one segmentation of each word "
    "(§5.1) | merges are skipped with probability {0:g}, anew in each epoch",
    "data.target_bpe_dropout": "BPE-dropout of targets | one segmentation of each word "
    "(§5.1) | merges are skipped with probability {0:g}, anew in each epoch",
    "data.modifiers": "modified pairs | none (§5.1) | {0}, anew in each epoch",
    "training.simcut": "SimCut | cross-entropy with label smoothing (§5.4) | plus "
    "{0:g} times the divergence from a pass with tokens cut off",
    "training.r_drop": "R-Drop | cross-entropy with label smoothing (§5.4) | of two "
    "passes, plus {0:g} times half their divergence",
    "training.gradient_dtype": "gradients between devices | unspecified (§5.2) | "
    "rounded to {0} before they are added up",
    "training.skip_gradient_norm": "large gradients | every step makes its update "
    "(§5.3) | no update where the gradient's norm is above {0:g}",
    "optimizer.warmup_steps": "warm-up | 4,000 steps (§5.3) | {0:,}",
    "optimizer.beta1": "Adam's beta1 | 0.9 (§5.3) | {0:g}",
    "optimizer.beta2": "Adam's beta2 | 0.98 (§5.3) | {0:g}",
    "optimizer.epsilon": "Adam's epsilon | 1e-9 (§5.3) | {0:g}",
    "optimizer.weight_decay": "weight decay | none (§5.3) | {0:g}",
    "training.ema_decay": "moving average | none; the last checkpoints are averaged "
    "(§6.1) | of the parameters, with decay {0:g}, is the model",
    "decoding.beam_size": "beam | 4 (§6.1) | {0}",
    "decoding.length_penalty": "alpha | 0.6 (§6.1) | {0:g}",
    "decoding.length_normalization": "length penalty | ((5 + n) / 6)^alpha (§6.1, "
    "reference [38]) | n^alpha",
    "decoding.beam_rule": "width of the beam | unspecified (§6.1) | each finished "
    "output takes a place of the beam",
    "decoding.max_extra_tokens": "longest output | source + 50 (§6.1) | source + {0}",
    "decoding.max_length_ratio": "longest output by ratio | source + 50 (§6.1) | also "
    "at most {0:g} times the source",
    "decoding.allow_unk": "unk | not mentioned (§6.1) | never generated",
    "decoding.constraint": "constraint on outputs | none (§6.1, §6.3) | each is one "
    "{0} over the words of the source",
    "decoding.mbr": "choice of the output | the most probable (§6.1) | the one "
    "with the highest mean {0} to all of the beam",
    "decoding.shortlist": "logits | of all subwords (§3.4) | of probable translations "
    "of the source",
    "decoding.sample": "search | beam search (§6.1) | sampling",
    "init_from": "initial parameters | random | those of {0}",
    "training.frozen": "frozen parameters | none | {0}",
    "evaluation.patience": "early stopping | a fixed number of steps (§5.2) | after "
    "{0} evaluations without a better development BLEU",
}

WORDS = {
    "learned": "learned, initialised and scaled as tokens are, one table a stack",
    "rotary": "rotary: nothing is added to embeddings; queries and keys of "
    "self-attention are rotated by their positions",
    "swiglu": "swiglu, a gate: (swish(x W) * x V) W2, without biases",
    "geglu": "geglu, a gate: (gelu(x W) * x V) W2, without biases",
}
"""What values of keys are, where their name does not say it."""

# Of parsers (§6.3), in place of the entries of these keys above, and beside the others.
_PARSING = {
    "network.num_layers": "number of layers | 4 (§6.3) | {0}",
    "network.d_model": "d_model | 1,024 (§6.3) | {0:,}",
    "network.d_ff": "d_ff | 2,048, as of the base model (§6.3) | {0:,}",
    "network.num_heads": "heads | 8, as of the base model (§6.3) | {0}",
    "training.label_smoothing": "label smoothing | 0.1, as of the base model (§6.3) | "
    "{0:g}",
    "steps": "steps | 100,000, as of the base model (§6.3) | {0:,}",
    "vocabulary.source_size": "separate vocabularies | 16K tokens, semi-supervised "
    "32K; of which side and kind unspecified (§6.3) | {0:,} tokens of the source; "
    "symbols of trees on the target side",
    "vocabulary.unit": "words of the target | unspecified (§6.3) | {0}: each symbol of "
    "a tree is a token",
    "network.tying": "tying | one matrix for source, target and pre-softmax (§3.4); "
    "unspecified in §6.3 | model.tying={0}",
    "decoding.beam_size": "beam | 21 (§6.3) | {0}",
    "decoding.length_penalty": "alpha | 0.3 (§6.3) | {0:g}",
    "decoding.max_extra_tokens": "longest output | source + 300 (§6.3) | source + {0}",
    "decoding.max_length_ratio": "longest output by ratio | source + 300 (§6.3) | also "
    "at most {0:g} times the source",
}

_CHOSEN_FOR_PARSING = ("network.attention_dropout",)  # "both attention and residual"


def _defaults(
    table: Mapping[str, str], values: Mapping[str, Any]
) -> dict[str, PaperDefault]:
    """Parses a table; the paper's values are those of `values`, or the defaults."""
    values = {**dict(flatten(to_dict(Config()))), **values}
    return {
        key: PaperDefault(
            key, values[key.replace("network.", "model.")], *text.split(" | ")
        )
        for key, text in table.items()
    }


_OF_TRANSLATION = _defaults(_TRANSLATION, {})
_OF_PARSING = _OF_TRANSLATION | _defaults(_PARSING, PRINTED)


def paper_defaults(*, parsing: bool = False) -> tuple[PaperDefault, ...]:
    """Returns the keys of translation (§5, §6.1), or of parsing (§6.3)."""
    if not parsing:
        return tuple(_OF_TRANSLATION.values())
    found = _OF_PARSING.values()
    return tuple(one for one in found if one.key not in _CHOSEN_FOR_PARSING)
