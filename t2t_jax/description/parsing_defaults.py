"""The values of §6.3 of keys whose other values depart from the paper's parser."""

from __future__ import annotations

from t2t_jax.description.paper_defaults import PAPER_DEFAULTS, PaperDefault
from t2t_jax.description.parsing import PRINTED

_UNCHANGED = "{}, as of the base model (§6.3)"

_PARSING_DEFAULTS = (
    PaperDefault(
        "network.num_layers",
        PRINTED["model.num_layers"],
        "number of layers",
        "4 (§6.3)",
        "{0}",
    ),
    PaperDefault(
        "network.d_model",
        PRINTED["model.d_model"],
        "d_model",
        "1,024 (§6.3)",
        "{0:,}",
    ),
    PaperDefault("network.d_ff", 2_048, "d_ff", _UNCHANGED.format("2,048"), "{0:,}"),
    PaperDefault("network.num_heads", 8, "heads", _UNCHANGED.format("8"), "{0}"),
    PaperDefault(
        "training.label_smoothing",
        0.1,
        "label smoothing",
        _UNCHANGED.format("0.1"),
        "{0:g}",
    ),
    PaperDefault("steps", 100_000, "steps", _UNCHANGED.format("100,000"), "{0:,}"),
    PaperDefault(
        "vocabulary.source_size",
        0,
        "separate vocabularies",
        "16K tokens, semi-supervised 32K; of which side and kind unspecified (§6.3)",
        "{0:,} tokens of the source; symbols of trees on the target side",
    ),
    PaperDefault(
        "vocabulary.unit",
        "subwords",
        "words of the target",
        "unspecified (§6.3)",
        "{0}: each symbol of a tree is a token",
    ),
    PaperDefault(
        "network.tying",
        "all",
        "tying",
        "one matrix for source, target and pre-softmax (§3.4); unspecified in §6.3",
        "model.tying={0}",
    ),
    PaperDefault(
        "decoding.beam_size", PRINTED["decoding.beam_size"], "beam", "21 (§6.3)", "{0}"
    ),
    PaperDefault(
        "decoding.length_penalty",
        PRINTED["decoding.length_penalty"],
        "alpha",
        "0.3 (§6.3)",
        "{0:g}",
    ),
    PaperDefault(
        "decoding.max_extra_tokens",
        PRINTED["decoding.max_extra_tokens"],
        "longest output",
        "source + 300 (§6.3)",
        "source + {0}",
    ),
    PaperDefault(
        "decoding.max_length_ratio",
        0.0,
        "longest output by ratio",
        "source + 300 (§6.3)",
        "also at most {0:g} times the source",
    ),
)
"""Of parsers, in place of those of the same key and beside the others."""

_CHOSEN_FOR_PARSING = ("network.attention_dropout",)  # "both attention and residual"


def paper_defaults(*, parsing: bool) -> tuple[PaperDefault, ...]:
    """Returns the defaults of translation (§5, §6.1), or of parsing (§6.3)."""
    if not parsing:
        return PAPER_DEFAULTS
    by_key = {default.key: default for default in PAPER_DEFAULTS}
    by_key |= {default.key: default for default in _PARSING_DEFAULTS}
    return tuple(by_key[key] for key in by_key if key not in _CHOSEN_FOR_PARSING)
