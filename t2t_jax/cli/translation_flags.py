"""The flags of whoever translates: of the search, of the input and of the output."""

from __future__ import annotations

from t2t_jax.cli.flag_rules import Flag

_TRANSLATE = ("translate",)
_SEARCH = (*_TRANSLATE, "evaluate")

TRANSLATION_FLAGS = {
    "input": Flag("-", _TRANSLATE, "File to translate; - is stdin.", rule="path"),
    "stream": Flag(
        "false", _TRANSLATE, "Answers each line as it comes, not all at the end."
    ),
    "strict": Flag(
        "false",
        _TRANSLATE,
        "Ends with exit code 65 at an input line that is not UTF-8.",
    ),
    "prefixes": Flag(
        "",
        _TRANSLATE,
        "What each translation must begin with, a line for each; empty is free.",
        rule="path",
    ),
    "token_scores": Flag(
        "false", _TRANSLATE, "Adds the log-probability of each token; tsv or jsonl."
    ),
    "alignments": Flag(
        "false", _TRANSLATE, "Adds who was looked at for each token; tsv or jsonl."
    ),
    "shards": Flag(
        "",
        _TRANSLATE,
        "Works on so many parts of --input, kept in OUTPUT.shards until all are done.",
        rule="count",
    ),
    "resume": Flag(
        "false", _TRANSLATE, "Goes on with the shards of a job that was killed."
    ),
    "ensemble": Flag(
        "",
        _SEARCH,
        "More runs or models, A,B, of which the mean probability is searched.",
        rule="paths",
    ),
    "beam_size": Flag(
        "",
        _SEARCH,
        "Hypotheses alive per sentence; 1 is greedy with a length_penalty of 0.",
        key="decoding.beam_size",
    ),
    "length_penalty": Flag(
        "",
        _SEARCH,
        "The paper's alpha; 0 compares bare log-probabilities.",
        key="decoding.length_penalty",
    ),
    "n_best": Flag(
        "",
        _TRANSLATE,
        "Translations per line, the best first, or as many samples; tsv or jsonl.",
        key="decoding.n_best",
    ),
    "min_tokens": Flag(
        "", _SEARCH, "A translation's least tokens.", key="decoding.min_tokens"
    ),
    "max_extra_tokens": Flag(
        "",
        _SEARCH,
        "How many tokens a translation may have more than its source.",
        key="decoding.max_extra_tokens",
    ),
    "sample": Flag(
        "false",
        _SEARCH,
        "Draws tokens by their probability, instead of searching.",
        key="decoding.sample",
    ),
    "temperature": Flag(
        "",
        _SEARCH,
        "Of samples: below 1 the probable becomes more so.",
        key="decoding.temperature",
    ),
    "top_k": Flag(
        "",
        _SEARCH,
        "Of samples: only among so many tokens; 0 is all.",
        key="decoding.top_k",
    ),
    "top_p": Flag(
        "",
        _SEARCH,
        "Of samples: only among the likeliest of so much probability.",
        key="decoding.top_p",
    ),
    "sampling_seed": Flag(
        "",
        _SEARCH,
        "Of samples: another seed draws others.",
        key="decoding.seed",
    ),
}
"""Those of `t2t_jax.cli.options.FLAGS`; one with a `key` is that key's short form."""

OF_SAMPLES = ("temperature", "top_k", "top_p", "sampling_seed")
"""The flags that mean nothing to a search, which is what there is without `sample`."""
