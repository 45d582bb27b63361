"""Statistics of the data of a run: the content of `data.json`, and its text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from typing import Any, TypeAlias

from t2t_jax.data.config import FILTERS, SIDES, DataConfig
from t2t_jax.data.corpora.corpus import locator, short_name
from t2t_jax.data.report.leakage import (
    copy_warnings,
    find_copies,
    leak_counts,
    leak_warnings,
)
from t2t_jax.data.token_cache.filters import ALWAYS_COUNTED, REASONS
from t2t_jax.data.token_cache.known_words import MAX_WORDS
from t2t_jax.data.token_cache.shards import MAX_EXAMPLES
from t2t_jax.data.token_cache.token_cache import TokenCache
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.files import template_environment

_Examples: TypeAlias = dict[str, list[dict[str, Any]]]

_BINS = 16
_MANY_DROPPED = 0.5


def describe_data(
    vocabularies: VocabularyPair,
    *,
    config: DataConfig,
    train: TokenCache,
    dev: TokenCache | None,
    leaks: dict[str, Any],
) -> dict[str, Any]:
    """Collects the content of `data.json`.

    Returns:
      Of each vocabulary: size and fingerprint. Of each corpus and each of several
      parts: spec, fingerprint, counts, examples by reason with their locations, and for
      both sides tokens, mean length, a histogram of lengths (eos included), and the
      share of unknown tokens. Of training: a lower bound of batches per epoch, the
      number of distinct source words, the copies of each part, the filters that were
      asked for, and BPE-dropout and modifiers, if there are any, without which all
      tokens are counted. And the leaks.
    """
    report: dict[str, Any] = {
        f"{side}_vocabulary": {"size": one.size, "fingerprint": one.fingerprint}
        for side, one in vocabularies._asdict().items()
    }
    if vocabularies.shared:
        report = {"vocabulary": report["target_vocabulary"]}
    report["train"] = found = _describe_corpus(train)
    if dev is not None:
        report["dev"] = _describe_corpus(dev)
    found["batches_per_epoch_at_least"] = min_batches(train, config)
    found["copies"] = find_copies(train)
    asked = {"copies": config.drop_copies, "duplicates": config.drop_duplicates}
    found["filters"] = [name for name in asked if asked[name]] + [*config.filter_names]
    if any(config.bpe_dropout):
        found["bpe_dropout"] = dict(zip(SIDES, config.bpe_dropout, strict=True))
    if config.modifier_rates:
        found["modifiers"] = config.modifier_rates
    if train.source_words is not None:
        found["source_words"] = len(train.source_words)
    return {**report, "leaks": leaks}


def _describe_corpus(cache: TokenCache) -> dict[str, Any]:
    """Returns the facts of a corpus, and of each of several parts."""
    parts = cache.meta["parts"]
    examples: list[_Examples] = []
    for corpus, part in zip(cache.corpora, parts, strict=True):
        known: _Examples = part["examples"]
        if any(known.values()):  # A mixture is counted to locate them.
            locate = locator(corpus)
            known = {
                reason: [one | locate(one["line"])._asdict() for one in pairs]
                for reason, pairs in known.items()
            }
        examples.append(known)
    found = {
        "spec": cache.meta["spec"],
        "fingerprint": cache.meta["corpus"],
        **_corpus_statistics(cache.meta, _select_examples(examples)),
    }
    if len(parts) > 1:
        found["parts"] = [
            {"spec": part["spec"], "weight": weight, **_corpus_statistics(part, some)}
            for part, weight, some in zip(parts, cache.weights, examples, strict=True)
        ]
    return found


def min_batches(cache: TokenCache, config: DataConfig) -> int:
    """Returns the batches of an epoch without any padding."""
    parts = [*zip(cache.meta["parts"], cache.weights, strict=True)]
    tokens = (sum(w * _tokens(p["lengths"][side]) for p, w in parts) for side in SIDES)
    return math.ceil(max(tokens) / config.tokens_per_batch)


def _tokens(lengths: list[int]) -> int:
    return sum(length * count for length, count in enumerate(lengths))


def _select_examples(parts: list[_Examples]) -> _Examples:
    """Selects a few examples by reason, from as many parts as possible."""
    found = {}
    for reason in REASONS:
        if reason in ALWAYS_COUNTED or any(reason in part for part in parts):
            rounds = zip_longest(*(part.get(reason, ()) for part in parts))
            pairs = filter(None, chain.from_iterable(rounds))
            found[reason] = [*islice(pairs, MAX_EXAMPLES)]
    return found


def _corpus_statistics(stats: dict[str, Any], examples: _Examples) -> dict[str, Any]:
    kept, unknown = max(stats["counts"]["kept"], 1), stats["unknown"]
    tokens = {side: _tokens(stats["lengths"][side]) for side in SIDES}
    return {
        "counts": stats["counts"],
        "tokens": tokens,
        "mean_length": {side: round(tokens[side] / kept, 2) for side in SIDES},
        "unknown_rate": {side: unknown[side] / max(tokens[side], 1) for side in SIDES},
        "length_histogram": histogram(stats["lengths"]),
        "examples": examples,
    }


def histogram(lengths: dict[str, list[int]]) -> dict[str, Any]:
    """Computes histograms of lengths with at most 16 bins of equal `width`.

    Args:
      lengths: of each side, how many sentences have 0, 1, 2 … tokens.

    Example:
      >>> histogram({"source": [0, 5, 7], "target": [0, 0, 3, 9] + 16 * [0] + [1]})
      {'width': 2, 'source': [12, 0, 0, 0, 0, 0, 0, 0, 0, 0],
       'target': [3, 9, 0, 0, 0, 0, 0, 0, 0, 1]}
    """
    longest = max(1, *(len(counts) - 1 for counts in lengths.values()))
    width = math.ceil(longest / _BINS)
    starts, bins = range(1, longest + 1, width), {}
    for side, counts in lengths.items():
        bins[side] = [sum(counts[start : start + width]) for start in starts]
    return {"width": width, **bins}


def summary_line(cache: TokenCache) -> str:
    """Returns a line with the pairs read, kept, and dropped by reason."""
    counts, most = cache.counts, cache.meta["max_length"]
    words = {"read": "pairs read", "kept": "kept", "empty": "empty"}
    words |= {"too_long": f"longer than {most} subwords", "ratio": "of unequal length"}
    words |= {"copies": "copies", "duplicates": "repeated"}
    words |= {name: f"by the filter {name}" for name in FILTERS}
    always = ("read", "kept", "empty", "too_long")
    shown = [one for one in words if counts.get(one) or one in always]
    parts = ", ".join(f"{counts[name]:,} {words[name]}" for name in shown)
    return f"{short_name(cache.meta['spec'])}: {parts}"


DROP_REASONS = {
    "empty": "with an empty side",
    "too_long": "longer than data.max_length",
    "ratio": "of unequal length, by data.max_length_ratio",
    "copies": "the same text on both sides, by data.drop_copies",
    "duplicates": "repeated, by data.drop_duplicates",
    "digits": "with other numbers, by data.filters=digits",
    "urls": "with other URLs or e-mail addresses, by data.filters=urls",
    "placeholders": "with other placeholders, by data.filters=placeholders",
    "brackets": "with other brackets, by data.filters=brackets",
    "punctuation": "with other final punctuation, by data.filters=punctuation",
    "capitals": "with other capitals, by data.filters=capitals",
    "letters": "of which less than half are letters, by data.filters=letters",
    "script": "in another script, by data.filters=script",
    "language": "in the language of the other side, by data.filters=language",
    "duplicate_targets": "whose target a better pair has, by "
    "data.filters=duplicate_targets",
}
"""Why pairs are not trained on, by the reason in `data.json`."""


def drop_warnings(cache: TokenCache) -> Iterator[str]:
    """Formats a warning about each part of which more than half is dropped."""
    for part in cache.meta["parts"]:
        counts = part["counts"]
        dropped = counts["read"] - counts["kept"]
        if dropped > _MANY_DROPPED * counts["read"]:
            reason = max((x for x in REASONS if x in counts), key=counts.__getitem__)
            _, key, name = DROP_REASONS[reason].rpartition("data.")
            change = f"config.{key}{name}" if key else "the files of the corpus"
            share, spec = dropped / counts["read"], short_name(part["spec"])
            yield (
                f"warning: {dropped:,} of the {counts['read']:,} pairs of {spec} "
                f"({share:.0%}) are dropped, {counts[reason]:,} {DROP_REASONS[reason]}."
                f" Check or change {change}."
            )


_MAX_BAR_WIDTH = 24
_MAX_PARTS = 40


def report_text(report: dict[str, Any]) -> str:
    """Formats the result of `describe_data` as text.

    Parts of a corpus have a line each; `data.json` has their details.
    """
    # Plain text, which quotes the corpus by repr.
    how = {"autoescape": False, "keep_trailing_newline": True}
    environment = template_environment("t2t_jax.data.report", "", **how)
    filters = {"repr": repr, "short_name": short_name, "trim_end": str.rstrip}
    environment.filters |= filters
    return environment.get_template("data_report.txt.jinja").render(
        report=report,
        reasons=DROP_REASONS,
        leak_lines=_leak_lines(report["leaks"]),
        copy_warnings=copy_warnings,
        place=lambda pair: f"line {pair['line']:,} of {short_name(pair['corpus'])}",
        bar=lambda count, most: "█" * math.ceil(_MAX_BAR_WIDTH * count / most),
        max_parts=_MAX_PARTS,
        max_words=MAX_WORDS,
    )


def _leak_lines(leaks: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["None of its lines is in the training text."]
    if any(found[side] for found in leaks.values() for side in SIDES):
        lines = [*leak_counts(leaks)]
    return [*lines, *leak_warnings(leaks), *copy_warnings(leaks)]
