"""Scores of a test set that is changed, as `--mode=evaluate --robustness` prints them.

Each change is made by the functions that modify training pairs (`data.modifiers`), of
every line and always alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from t2t_jax.data.batching.modifiers import Pair, modify

CHANGES: dict[str, tuple[str, ...]] = {
    "unchanged": (),
    **{one: (one,) for one in ("lower", "upper", "title", "no_punctuation", "typos")},
    "numbers_and_links": ("numbers", "urls"),
    **{one: (one,) for one in ("emoji", "double_spaces")},
}
"""The test sets, and by which modifiers each is changed, one after the other."""

HEADER = ("test set", "BLEU", "chrF", "items copied")
"""Of the rows of `robustness_rows`."""


def changed_pairs(pairs: Sequence[Pair], change: str) -> list[Pair]:
    """Returns the pairs of a test set with one of `CHANGES`.

    Example:
      >>> changed_pairs([("A dog.", "Ein Hund.")], "upper")
      [('A DOG.', 'EIN HUND.')]
    """
    names = CHANGES[change]
    return [modify(names, *pair, Random(number)) for number, pair in enumerate(pairs)]


def robustness_scores(
    pairs: Sequence[Pair], hypotheses: Sequence[str], **scoring: Any
) -> dict[str, Any]:
    """Scores the translations of all changed sets, one after the other.

    Args:
      pairs: sources and references, without changes.
      scoring: as `corpus_scores` takes it.

    Returns:
      By change: BLEU and chrF in percent, the number of items that were put in, and the
      share of them that are in the translation of their line; None without any.
    """
    from t2t_jax.evaluation.bleu import IN_TRAINING, corpus_scores

    found, count = {}, len(pairs)
    # What is put into an empty reference is nothing but the items.
    nothing = [(source, "") for source, _ in pairs]
    for number, change in enumerate(CHANGES):
        lines = hypotheses[number * count : (number + 1) * count]
        references = [reference for _, reference in changed_pairs(pairs, change)]
        scores = corpus_scores(lines, references, **scoring)
        items = changed_pairs(nothing, change)
        copied = [
            # Of ASCII alone, as Chinese has no spaces around an item.
            re.search(rf"(?a)(?<!\w){re.escape(item)}(?!\w)", line) is not None
            for line, (_, some) in zip(lines, items, strict=True)
            for item in some.split()
        ]
        found[change] = {name: scores[name] for name in IN_TRAINING} | {
            "items": len(copied),
            "copied": sum(copied) / len(copied) if copied else None,
        }
    return found


def robustness_rows(scores: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Formats the result of `robustness_scores` as rows of a table."""
    return [
        (
            change.replace("_", " "),
            *(f"{one[name]:.2f}" for name in ("bleu", "chrf")),
            "" if one["copied"] is None else f"{one['copied']:.1%}",
        )
        for change, one in scores.items()
    ]
