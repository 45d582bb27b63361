import json

import pytest

from t2t_jax.report.curves import MAX_POINTS
from t2t_jax.report.run_page import ReportWriter, run_page
from tests.report.made_up_run import eval_record, train_record, write_records, write_run
from tests.report.test_page import read


@pytest.fixture
def workdir(tmp_path):
    return write_run(tmp_path / "run <b>")


def data_of(page):
    return json.loads(read(page).scripts[0])


def test_the_page_has_what_the_run_is_and_where_it_stands(workdir):
    page = run_page(workdir)
    for part in (
        *("run &lt;b&gt;", "complete", "Done.", "17.50"),
        *("63,045,632 parameters", "packed rows", "longer than data.max_length"),
        *("Held-out text in the training text", "1 of the 19 pairs of tsv:test"),
        *("metrics.jsonl", "data.json", "cdcdcdcd", "Intervals are not computed"),
    ):
        assert part in page, part
    assert "it cannot be read" not in page


def test_scores_of_changed_test_sets_are_shown(workdir):
    row = {"bleu": 12.34, "chrf": 45.6, "items": 8, "copied": 0.75}
    scores = {"unchanged": {**row, "copied": None}, "numbers_and_links": row}
    facts = {"source": "<test>.en", "sentences": 1234, "checkpoint_step": 70}
    workdir.write_json("robustness.json", {**facts, "robustness": scores})
    page = run_page(workdir)
    for part in ("1,234 sentences of &lt;test&gt;.en", "numbers and links", "75.0%"):
        assert part in page, part
    workdir.write_json("robustness.json", {"robustness": 7})
    assert "Not shown, as it cannot be read" in run_page(workdir)


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("data.json", "{}", "KeyError"),
        ("data.json", "[", "data.json is damaged"),
        ("data.json", '{"train": 7, "leaks": []}', "Not shown"),
        ("data.json", None, "data.json is missing"),
        ("environment.json", "[]", "did not record its environment"),
        ("metrics.jsonl", '{"step": 1, "kind": "eval", "bleu": "x"}\n', "1"),
        ("metrics.jsonl", '{"step": null, "kind": []}\n', "No step has been recorded"),
        ("metrics.jsonl", None, "No evaluation has been made yet"),
        ("samples/100.txt", "\x00\xff", "Samples"),
        ("dev_outputs/100.txt", "", "Scores"),
    ],
)
def test_damaged_files_are_named_and_the_rest_is_shown(workdir, name, content, shown):
    path = workdir.path / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content, encoding="latin-1")
    page = run_page(workdir)
    assert shown in page
    assert "Departures from the paper" in page


def test_a_page_of_100_000_steps_is_small(workdir):
    many = [train_record(step) for step in range(10, 100_001, 10)]
    many += [eval_record(step, step / 1e4) for step in range(100, 100_001, 100)]
    many += [{"step": s, "kind": "skipped", "loss": None} for s in range(3, 99_999, 7)]
    write_records(workdir.path, many)
    for step in range(100, 20_001, 100):
        text = (workdir.path / "samples" / "100.txt").read_text(encoding="utf-8")
        workdir.write_samples(step, text)
    page = run_page(workdir)
    assert len(page.encode()) < 700_000
    (run,) = data_of(page)["runs"]
    assert run["skipped"][0] == 3
    sizes = [len(c[0]) for kinds in run["curves"].values() for c in kinds.values()]
    assert 900 < max(sizes) <= MAX_POINTS + 2
    assert "The newest 200 of 1,000 evaluations" in page


def test_an_error_of_the_writer_is_one_warning(workdir):
    logged = []
    (workdir.path / "report.html").mkdir()
    writer = ReportWriter(workdir, log=logged.append)
    writer(False)
    writer(True)
    (line,) = logged
    assert line.startswith("WARNING: report.html cannot be written: ")
    assert "--mode=report" in line


def test_pages_take_a_hundredth_of_the_time(workdir, monkeypatch):
    now, written = [100.0], []

    def two_seconds(workdir, *, is_over):
        now[0] += 2.0
        written.append(now[0])
        return "page"

    monkeypatch.setattr("t2t_jax.report.run_page.run_page", two_seconds)
    writer = ReportWriter(workdir, log=print, clock=lambda: now[0])
    for seconds, is_over in ((0, False), (199, False), (1, False), (1, True)):
        now[0] += seconds
        writer(is_over)
    assert written == [102.0, 304.0, 307.0]
