from pathlib import Path

import pytest

from t2t_jax.config import Config
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.model.config import TransformerConfig
from t2t_jax.report.comparison import compare, compare_page, open_runs
from t2t_jax.run.workdir import Workdir
from tests.report.made_up_run import HOSTILE, write_run


@pytest.fixture
def directories(tmp_path):
    """Two runs of different lengths with outputs, and one without an evaluation."""
    write_run(tmp_path / "a")
    other = ["A dog barked.", HOSTILE, "Two cats are sleeping."]
    config = Config(steps=60, model=TransformerConfig(dropout=0.3))
    write_run(tmp_path / "b", steps=60, config=config, hypotheses=other)
    short = Workdir(tmp_path / "c")
    short.path.mkdir()
    short.write_config(Config(steps=7))
    return [str(tmp_path / name) for name in "abc"]


def tables_of(directories):
    found = compare(open_runs(directories), log=lambda line: None)
    return {one.title: one for one in found}


def test_runs_stand_beside_each_other_and_the_paper_even_unevaluated(directories):
    tables, none = tables_of(directories), "\N{EM DASH}"
    rows = tables["Runs"].rows
    assert [row[0] for row in rows] == ["a", "b", "c"]
    assert [row[1] for row in rows] == ["complete", "complete", "not started"]
    assert (rows[0][5:], {*rows[2][5:]}) == (("17.50", "7.389", "100"), {none})
    assert tables["Development BLEU"].rows[0] == ("30", none, "11.25", none)
    rows = tables["Table 3 of the paper"].rows
    assert rows[0] == ("a", "base", "7.39", "4.92", "17.5", "25.8", "63", "65")
    assert [row[0] for row in rows] == ["a", "c"]  # no row has a dropout of 0.3


def test_only_what_differs_is_listed_of_settings_and_translations(directories):
    tables = tables_of(directories)
    assert tables["Settings that differ"].rows == [
        ("steps", "100", "60", "7"),
        ("model.dropout", "0.1", "0.3", "0.1"),
    ]
    table = tables["Translations"]
    sources = [("source", "Ein Hund bellt."), ("reference", "A dog barks.")]
    outputs = [("a", "A dog barks."), ("b", "A dog barked.")]
    assert table.rows[:4] == [*sources, *outputs]
    assert "Of 3 development sentences" in table.notes[0]
    assert "1 have the same" in table.notes[0]  # the hostile one


def test_outputs_are_tested_in_pairs(directories, tmp_path):
    tables = tables_of(directories)
    first, second, third = tables["Paired tests"].rows
    assert first[3:5] == ("\N{EM DASH}", "\N{EM DASH}")
    assert float(second[3]) < 0  # worse than a
    assert 0 <= float(second[4]) <= 1
    assert set(third[1:]) == {"\N{EM DASH}"}
    # Neither are outputs of another development set.
    (tmp_path / "b" / "dev_outputs" / "reference.txt").write_text("x\ny\nz\n")
    tables = tables_of(directories)
    assert set(tables["Paired tests"].rows[1][1:]) == {"\N{EM DASH}"}
    notes = " ".join(tables["Paired tests"].notes)
    assert all(f"{name}: not tested" in notes for name in "bc")


@pytest.mark.parametrize("tokenize", ["char", "none"])
def test_outputs_are_scored_by_the_tokens_of_the_first_run(directories, tokenize):
    tables = tables_of(directories)
    before = tables["Paired tests"].rows
    config = Config(steps=60, evaluation=EvaluationConfig(tokenize=tokenize))
    Workdir(Path(directories[0])).write_config(config)
    tables = tables_of(directories)
    after, notes = tables["Paired tests"].rows, tables["Paired tests"].notes
    assert f"|tok:{tokenize}|" in notes[1]
    assert before[1][1] != after[1][1]
    assert [row[5:] for row in before] == [row[5:] for row in after]


def test_the_page_is_harmless(directories):
    runs = open_runs(directories)
    page = compare_page(runs, compare(runs, log=lambda line: None))
    assert "<script>alert" not in page
