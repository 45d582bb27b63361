"""`--mode=evaluate --robustness`: the scores of a test set that is changed.

Each change is made by the functions that modify training pairs (`data.modifiers`), of
every line and always alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from t2t_jax.cli.console.tables import Section
from t2t_jax.cli.evaluation.corpus import Corpus
from t2t_jax.data.batching.modifiers import modify

CHANGES: dict[str, tuple[str, ...]] = {
    "unchanged": (),
    "lower": ("lower",),
    "upper": ("upper",),
    "title": ("title",),
    "no_punctuation": ("no_punctuation",),
    "typos": ("typos",),
    "numbers_and_links": ("numbers", "urls"),
    "emoji": ("emoji",),
    "double_spaces": ("double_spaces",),
}
"""The test sets, and by which modifiers each is changed, one after the other."""


def changed_sets(corpus: Corpus) -> Corpus:
    """Returns the test sets of all changes, one after the other."""
    lines = [pair for names in CHANGES.values() for pair in _change(corpus, names)]
    return Corpus([one for one, _ in lines], [other for _, other in lines], None)


def _change(corpus: Corpus, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    pairs = zip(corpus.sources, corpus.references, strict=True)
    for number, (source, reference) in enumerate(pairs):
        yield modify(names, source, reference, Random(number))


def robustness_scores(
    corpus: Corpus, hypotheses: Sequence[str], **scoring: Any
) -> dict[str, Any]:
    """Scores the translations of `changed_sets`.

    Args:
      corpus: the lines without changes.
      scoring: as `corpus_scores` takes it.

    Returns:
      By change: BLEU and chrF in percent, the number of items that were put in, and the
      share of them that are in the translation of their line; None without any.
    """
    from t2t_jax.evaluation.bleu import IN_TRAINING, corpus_scores

    found, count = {}, len(corpus.sources)
    nothing = corpus._replace(references=[""] * count)
    for number, (change, names) in enumerate(CHANGES.items()):
        lines = hypotheses[number * count : (number + 1) * count]
        references = [reference for _, reference in _change(corpus, names)]
        scores = corpus_scores(lines, references, **scoring)
        # What is put into an empty reference is nothing but the items.
        items = [text.split() for _, text in _change(nothing, names)]
        copied = [
            item in line
            for line, some in zip(lines, items, strict=True)
            for item in some
        ]
        found[change] = {
            **{name: scores[name] for name in IN_TRAINING},
            "items": len(copied),
            "copied": sum(copied) / len(copied) if copied else None,
        }
    return found


def robustness_table(scores: dict[str, dict[str, Any]]) -> Section:
    """Makes the table of `robustness_scores`."""
    rows = [
        (
            change.replace("_", " "),
            *(f"{one[name]:.2f}" for name in ("bleu", "chrf")),
            "" if one["copied"] is None else f"{one['copied']:.1%}",
        )
        for change, one in scores.items()
    ]
    header = ("test set", "BLEU", "chrF", "items copied")
    return Section("Robustness", rows, header, right=(1, 2, 3))
