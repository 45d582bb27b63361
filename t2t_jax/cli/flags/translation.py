"""Flags of translation: input, output, search and sampling."""

from __future__ import annotations

from t2t_jax.cli.flags.values import Flag

_TRANSLATE = ("translate",)
_SEARCH = (*_TRANSLATE, "evaluate")

TRANSLATION_FLAGS = {
    "input": Flag(
        "-",
        _TRANSLATE,
        "File to translate, one sentence per line; - is stdin.",
        rule="path",
        metavar="FILE",
    ),
    "stream": Flag(
        "false",
        _TRANSLATE,
        "Translate each line of stdin as it arrives, instead of in batches.",
    ),
    "strict": Flag(
        "false",
        _TRANSLATE,
        "Exit with code 65 at an input line that is not UTF-8.",
    ),
    "prefixes": Flag(
        "",
        _TRANSLATE,
        "Forced prefixes of the translations, one line per line of --input; an empty "
        "line forces no prefix.",
        rule="path",
        metavar="FILE",
    ),
    "token_scores": Flag(
        "false",
        _TRANSLATE,
        "Add the log-probability of each token; with --format=tsv or jsonl.",
    ),
    "alignments": Flag(
        "false",
        _TRANSLATE,
        "Add the most attended source token of each token; with --format=tsv or jsonl.",
    ),
    "shards": Flag(
        "",
        _TRANSLATE,
        "Translate --input in this many parts, kept in OUTPUT.shards until all are "
        "complete.",
        rule="shards",
        metavar="N",
    ),
    "resume": Flag(
        "false",
        _TRANSLATE,
        "Continue an interrupted job with --shards.",
    ),
    "ensemble": Flag(
        "",
        _SEARCH,
        "More runs or models, DIR,DIR, whose probabilities are averaged with those of "
        "--workdir.",
        rule="paths",
        metavar="DIRS",
    ),
    "beam_size": Flag(
        "",
        _SEARCH,
        "Hypotheses per sentence; 1 with --length_penalty=0 is greedy search.",
        key="decoding.beam_size",
        metavar="N",
    ),
    "length_penalty": Flag(
        "",
        _SEARCH,
        "Alpha of the paper; 0 compares plain log-probabilities.",
        key="decoding.length_penalty",
        metavar="X",
    ),
    "n_best": Flag(
        "",
        _TRANSLATE,
        "Translations per line, best first, or samples; with --format=tsv or jsonl.",
        key="decoding.n_best",
        metavar="N",
    ),
    "min_tokens": Flag(
        "",
        _SEARCH,
        "Minimum number of tokens of a translation.",
        key="decoding.min_tokens",
        metavar="N",
    ),
    "max_extra_tokens": Flag(
        "",
        _SEARCH,
        "Maximum number of tokens by which a translation may exceed its source.",
        key="decoding.max_extra_tokens",
        metavar="N",
    ),
    "sample": Flag(
        "false",
        _SEARCH,
        "Sample tokens from the model's distribution instead of searching.",
        key="decoding.sample",
    ),
    "temperature": Flag(
        "",
        _SEARCH,
        "With --sample: divides the logits; below 1 favours probable tokens.",
        key="decoding.temperature",
        metavar="X",
    ),
    "top_k": Flag(
        "",
        _SEARCH,
        "With --sample: sample among this many most probable tokens; 0 is all.",
        key="decoding.top_k",
        metavar="N",
    ),
    "top_p": Flag(
        "",
        _SEARCH,
        "With --sample: sample among the most probable tokens that add up to this "
        "probability.",
        key="decoding.top_p",
        metavar="X",
    ),
    "sampling_seed": Flag(
        "",
        _SEARCH,
        "With --sample: random seed.",
        key="decoding.seed",
        metavar="N",
    ),
}
"""Part of `options.FLAGS`; a flag with a `key` is short for that key."""

SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "sampling_seed")
"""The flags that require `sample`."""
