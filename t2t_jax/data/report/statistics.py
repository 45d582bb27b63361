"""What the text of a run is, for programs: `data.json`."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Any, TypeAlias

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.mixture import locate_pair
from t2t_jax.data.report.leakage import find_copies
from t2t_jax.data.token_cache.filters import REASONS
from t2t_jax.data.token_cache.statistics import (
    LONGEST_NAME,
    MOST_EXAMPLES,
    SIDES,
    truncate,
)
from t2t_jax.data.token_cache.token_cache import TokenCache
from t2t_jax.data.vocabulary.pair import VocabularyPair

_Examples: TypeAlias = dict[str, list[dict[str, Any]]]

_BINS = 16


def describe_data(
    vocabularies: VocabularyPair,
    *,
    config: DataConfig,
    train: TokenCache,
    dev: TokenCache | None,
    leaks: dict[str, Any],
) -> dict[str, Any]:
    """Tells what a run reads, as its `data.json` records it.

    Args:
      vocabularies: what the caches were encoded with.
      dev: the development pairs; None where evaluation is off.
      leaks: what `find_all_leaks` has found of held-out text in the training text.

    Returns:
      Of the vocabulary, or of each: size and fingerprint. Of each corpus: spec,
      fingerprint, counts, examples by reason with the places where they stand, and for
      both sides tokens, mean length, a histogram of lengths (eos included in all of
      them), and the share of tokens that is unknown; the same of each of its parts, if
      it has several. Of training: how many batches an epoch has at least, and how many
      different words its sources have, and of each part how many pairs are copies. And
      the leaks.
    """
    sides = vocabularies._asdict()
    told: dict[str, Any] = {
        f"{side}_vocabulary": {
            "size": vocabulary.size,
            "fingerprint": vocabulary.fingerprint,
        }
        for side, vocabulary in sides.items()
    }
    if vocabularies.shared:
        told = {"vocabulary": told["target_vocabulary"]}
    for name, cache in (("train", train), ("dev", dev)):
        if cache is None:
            continue
        examples = [_placed(cache, part) for part in range(len(cache.corpora))]
        told[name] = {
            "spec": cache.meta["spec"],
            "fingerprint": cache.meta["corpus"],
            **_figures(cache.meta, _some_of_each(examples)),
        }
        if len(cache.weights) > 1:
            every = zip(cache.meta["parts"], cache.weights, examples, strict=True)
            told[name]["parts"] = [
                {"spec": part["spec"], "weight": weight, **_figures(part, of_part)}
                for part, weight, of_part in every
            ]
    least = least_batches(train, config)
    told["train"]["batches_per_epoch_at_least"] = least
    told["train"]["copies"] = find_copies(train)
    if train.source_words is not None:
        told["train"]["source_words"] = len(train.source_words)
    return {**told, "leaks": leaks}


def least_batches(cache: TokenCache, config: DataConfig) -> int:
    """Returns how many batches an epoch would have if no slot stayed empty."""
    tokens = [
        sum(
            weight * _tokens(part["lengths"][side])
            for part, weight in zip(cache.meta["parts"], cache.weights, strict=True)
        )
        for side in SIDES
    ]
    return math.ceil(max(tokens) / config.tokens_per_batch)


def _tokens(lengths: list[int]) -> int:
    return sum(length * count for length, count in enumerate(lengths))


def _placed(cache: TokenCache, part: int) -> _Examples:
    """Returns the examples of a part, with places instead of lines of that part."""
    corpus = cache.corpora[part]
    return {
        reason: [
            {**pair, **locate_pair(corpus, pair["line"])._asdict()} for pair in pairs
        ]
        for reason, pairs in cache.meta["parts"][part]["examples"].items()
    }


def _some_of_each(parts: list[_Examples]) -> _Examples:
    """Chooses a few examples by reason, of as many parts as have any."""
    return {
        reason: [
            pair
            for turn in zip_longest(*(part[reason] for part in parts))
            for pair in turn
            if pair is not None
        ][:MOST_EXAMPLES]
        for reason in REASONS
    }


def _figures(figures: dict[str, Any], examples: _Examples) -> dict[str, Any]:
    """Sums up the figures of a corpus, or of a part, as its cache keeps them."""
    kept = max(figures["counts"]["kept"], 1)
    tokens = {side: _tokens(figures["lengths"][side]) for side in SIDES}
    return {
        "counts": figures["counts"],
        "tokens": tokens,
        "mean_length": {side: round(tokens[side] / kept, 2) for side in SIDES},
        "unknown_rate": {
            side: figures["unknown"][side] / max(tokens[side], 1) for side in SIDES
        },
        "length_histogram": histogram(figures["lengths"]),
        "examples": examples,
    }


def histogram(lengths: dict[str, list[int]]) -> dict[str, Any]:
    """Gathers counts of lengths in at most 16 bins of one width.

    Args:
      lengths: of each side, how many sentences have 0, 1, 2 … tokens.

    Returns:
      `width`, and of each side the counts: the first is of lengths 1 to `width`.

    Example:
      >>> histogram({"source": [0, 5, 7], "target": [0, 0, 3, 9] + 16 * [0] + [1]})
      {'width': 2, 'source': [12, 0, 0, 0, 0, 0, 0, 0, 0, 0],
       'target': [3, 9, 0, 0, 0, 0, 0, 0, 0, 1]}
    """
    longest = max(1, *(len(counts) - 1 for counts in lengths.values()))
    width = math.ceil(longest / _BINS)
    starts = range(1, longest + 1, width)
    return {
        "width": width,
        **{
            side: [sum(counts[start : start + width]) for start in starts]
            for side, counts in lengths.items()
        },
    }


def summary(cache: TokenCache) -> str:
    """Says in a line what was read of a corpus, and what was dropped of it and why."""
    counts = cache.counts
    told = (
        f"{truncate(cache.meta['spec'], LONGEST_NAME)}: {counts['read']:,} pairs read, "
        f"{counts['kept']:,} kept, {counts['empty']:,} empty, "
        f"{counts['too_long']:,} longer than {cache.meta['max_length']} subwords"
    )
    others = {"ratio": "unlike in length", "copies": "copies", "duplicates": "again"}
    for reason, words in others.items():
        if counts[reason]:
            told += f", {counts[reason]:,} {words}"
    return told
