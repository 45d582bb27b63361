"""A changed test set is always the same, and items are counted in their own lines."""

import pytest

from t2t_jax.evaluation.robustness import (
    CHANGES,
    changed_pairs,
    robustness_rows,
    robustness_scores,
)

COUNT = 29
PAIRS = [
    (f"A dog of {n} barks at us.", f"Ein Hund von {n} bellt uns an.")
    for n in range(COUNT - 1)
] + [("A cat.", "一只猫。")]
SETS = {change: changed_pairs(PAIRS, change) for change in CHANGES}
REFERENCES = [reference for pairs in SETS.values() for _, reference in pairs]


def test_the_references_themselves_have_the_best_scores():
    assert {change: changed_pairs(PAIRS, change) for change in CHANGES} == SETS
    assert SETS["unchanged"] == PAIRS
    assert len(CHANGES) == len(set(map(tuple, SETS.values()))) == 9
    for change, one in robustness_scores(PAIRS, REFERENCES).items():
        assert one["bleu"] == pytest.approx(100.0)
        assert one["chrf"] == pytest.approx(100.0)
        items = {"numbers_and_links": 2 * COUNT, "emoji": COUNT}.get(change, 0)
        assert one["items"] == items
        assert one["copied"] == (1.0 if items else None)
    glued = [reference.replace(" 一", "一") for reference in REFERENCES]
    assert robustness_scores(PAIRS, glued)["emoji"]["copied"] == 1.0


def test_an_item_that_is_not_in_its_own_line_is_lost():
    scores = robustness_scores(PAIRS, [*REFERENCES[1:], REFERENCES[0]])
    assert scores["numbers_and_links"]["copied"] < 0.1  # a short number is in another
    scores = robustness_scores(PAIRS, len(CHANGES) * [target for _, target in PAIRS])
    assert scores["upper"]["bleu"] < 30.0
    rows = {row[0]: row[1:] for row in robustness_rows(scores)}
    assert rows["typos"] == rows["unchanged"] == ("100.00", "100.00", "")
    assert rows["emoji"][2] == "0.0%"
