"""A changed test set is always the same, and items are counted in their own lines."""

from io import StringIO

import pytest

from t2t_jax.cli.console.tables import show
from t2t_jax.cli.evaluation.corpus import Corpus
from t2t_jax.cli.evaluation.robustness import (
    CHANGES,
    changed_sets,
    robustness_scores,
    robustness_table,
)

PAIRS = 29
SOURCES = [f"A dog of {n} barks at us." for n in range(PAIRS)]
REFERENCES = [f"Ein Hund von {n} bellt uns an." for n in range(PAIRS)]
CORPUS = Corpus(SOURCES, REFERENCES, None)


def test_the_references_themselves_have_the_best_scores():
    changed = changed_sets(CORPUS)
    assert changed == changed_sets(CORPUS)
    assert changed.sources[:PAIRS] == SOURCES
    sets = [
        changed.sources[n : n + PAIRS] for n in range(0, len(changed.sources), PAIRS)
    ]
    assert len(sets) == len(CHANGES) == len({tuple(one) for one in sets}) == 9
    scores = robustness_scores(CORPUS, changed.references)
    for change, one in scores.items():
        assert one["bleu"] == pytest.approx(100.0)
        assert one["chrf"] == pytest.approx(100.0)
        items = {"numbers_and_links": 2 * PAIRS, "emoji": PAIRS}.get(change, 0)
        assert one["items"] == items
        assert one["copied"] == (1.0 if items else None)


def test_an_item_that_is_not_in_its_own_line_is_lost():
    changed = changed_sets(CORPUS)
    lines = [
        changed.references[(n + 1) % len(changed.references)] for n in range(9 * PAIRS)
    ]
    scores = robustness_scores(CORPUS, lines)
    assert scores["numbers_and_links"]["copied"] < 0.1  # of the numbers a short one
    scores = robustness_scores(CORPUS, REFERENCES * 9)
    assert scores["emoji"]["copied"] == 0.0
    assert scores["typos"]["bleu"] == pytest.approx(100.0)
    assert scores["upper"]["bleu"] < 30.0
    written = StringIO()
    show([robustness_table(scores)], file=written)
    rows = {" ".join(line.split()) for line in written.getvalue().splitlines()}
    assert "test set BLEU chrF items copied" in rows
    assert "unchanged 100.00 100.00" in rows
    assert any(row.startswith("emoji ") and row.endswith(" 0.0%") for row in rows)
