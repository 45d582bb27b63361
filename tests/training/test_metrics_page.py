"""docs/reference/metrics.md has every field of every record, and no others."""

import re

import pytest

from t2t_jax.evaluation.bracketing.parses import development_scores
from t2t_jax.run.callbacks import with_learning_rate
from t2t_jax.training.loss import Sums, summarise
from t2t_jax.training.progress_and_patience import RunProgress
from t2t_jax.training.reporting.metrics_writer import (
    TIME_FIELDS,
    MetricsWriter,
    read_metrics,
)
from tests.evaluation.test_evaluator import LongSet
from tests.integration.tiny import ROOT
from tests.training.fake_run import Run

PAGE = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in re.findall(r"^\| `.*", PAGE.partition("## TensorBoard")[0], re.MULTILINE)
]


def fields(kind):
    """Returns the fields that the page names for a kind of record."""
    return {
        field
        for names, kinds, _ in ROWS
        if kinds == "all" or f"`{kind}`" in kinds
        for field in re.findall(r"`(\w+)`", names)
    }


@pytest.fixture
def records(tmp_path, monkeypatch):
    """Records of every kind, as a run writes them."""
    run = Run(monkeypatch)
    run.losses = {2: float("nan")}
    run.train(steps=3, log=1)
    two_passes = Sums(4.0, 3.0, 1, 2, 2, 8, consistency=0.5)
    run.records.append({**run.records[-1], **summarise(two_passes)})
    written = [with_learning_rate(record, lambda count: 0.1) for record in run.records]
    written += run.skipped
    for endless in (0, 64):
        written.append(LongSet(endless=endless).evaluator.evaluate(0.0, step=3)[0])
    of_trees = development_scores(["We sleep"], ["(S PRP VBP )S"], ["(S PRP VBP )S"])
    written.append({**written[-1], **of_trees})
    reporter = MetricsWriter(tmp_path, step=0, log=print)
    for record in written:
        reporter.write(record)
    reporter.write_final(RunProgress(3, best_score=7.0))
    reporter.write_final(RunProgress(3, best_score=7.0), score="f1")
    reporter.close()
    return list(read_metrics(tmp_path / "metrics.jsonl"))


@pytest.mark.parametrize("kind", ["train", "eval", "skipped", "final"])
def test_the_page_has_each_field_of_each_record(records, kind):
    found = set().union(*(r.keys() for r in records if r["kind"] == kind))
    assert fields(kind) | ({"epoch"} if kind == "final" else set()) == found


def test_the_page_says_which_fields_depend_on_the_clock():
    told = {
        re.findall(r"`(\w+)`", names)[0]
        for names, _, meaning in ROWS
        if meaning.endswith("depends on the clock")
    }
    assert told == set(TIME_FIELDS)
