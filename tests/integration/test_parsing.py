"""A parser from its corpus to its scores, on trees written for these tests."""

import json
import re

import pytest

from t2t_jax.data.trees.linearization import delinearize
from t2t_jax.data.trees.tree import read_tree
from tests.data.trees.sample import GOLD, SAMPLE
from tests.faults.running import metrics
from tests.integration import tiny

KEYS = {
    "data.train": f"trees:{SAMPLE}#tags",
    "data.dev": f"trees:{SAMPLE}#tags[:9]",
    "vocabulary.size": 100,
    "vocabulary.unit": "words",
    "vocabulary.source_size": 150,
    "vocabulary.source_unit": "words",
    "model.tying": "decoder",
    "steps": 6,
    "evaluation.every_steps": 6,
    "evaluation.bleu_sentences": 9,
    "decoding.max_extra_tokens": 20,
}


EVALUATE = ("--mode=evaluate", "--protocol=parsing", f"--reference={SAMPLE}")


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    path = tmp_path_factory.mktemp("parsing") / "run"
    done = tiny.succeed(*tiny.arguments(path, **KEYS))
    assert re.search(r"F1 \d+\.\d\d, 9 repaired  BLEU", done.stderr.decode())
    return path


def command(*argv, stdin=b""):
    done = tiny.succeed(*argv, stdin=stdin)
    return done.stdout.decode(), done.stderr.decode()


def test_the_best_step_is_that_of_f1_and_the_report_draws_the_trees(workdir):
    records = metrics(workdir)
    (evaluated,) = (record for record in records if record["kind"] == "eval")
    assert evaluated["repaired"] == 9
    assert records[-1]["best_f1"] == evaluated["f1"]
    page = (workdir / "report.html").read_text()
    assert page.count("<svg") >= 10
    assert f'aria-label="{GOLD[0]}"' in page
    assert "best development F1" in page
    standing, _ = command("--mode=status", f"--workdir={workdir}")
    f1 = f"{evaluated['f1']:.2f}"
    assert f"development F1 {f1} at step 6, best {f1} at step 6" in standing


def test_the_protocol_prints_scores_and_writes_trees(workdir, tmp_path):
    out = tmp_path / "parsed.mrg"
    given = (f"--workdir={workdir}", f"--hypotheses={out}")
    printed, table = command(*EVALUATE, *given)
    found = json.loads(printed)
    trees = [read_tree(line) for line in out.read_text().splitlines()]
    assert [tree.words() for tree in trees] == [tree.words() for tree in GOLD]
    assert (found["valid"], found["errors"]) == (40, 0)
    assert found["repaired"] > 30  # of 40: 6 steps are no training
    assert found["intervals"]["f1"]["half_width"] >= 0
    assert found["files"]["hypotheses"]["lines"] == 40
    for name in ("F1", "complete match", "up to 40 words", "repaired"):
        assert name in table


def test_with_the_constraint_of_trees_every_output_is_a_tree(workdir):
    constrained = (f"--workdir={workdir}", "--config.decoding.constraint=tree")
    printed, _ = command(*EVALUATE, *constrained)
    assert json.loads(printed)["repaired"] == 0
    sources = [" ".join(tree.words()) for tree in GOLD]
    lines = "".join(f"{source}\n" for source in sources)
    translate = ("--mode=translate", "--format=jsonl", *constrained)
    objects, log = command(*translate, stdin=lines.encode())
    rows = [json.loads(line) for line in objects.splitlines()]
    for source, row in zip(sources, rows, strict=True):
        tree = delinearize(row["translation"].split(), source.split())
        assert row["tree"] == str(tree)
    assert "repaired" not in log
    assert "without an end" not in log


def test_parses_are_printed_in_brackets_and_drawn(workdir):
    flags = ("--mode=translate", f"--workdir={workdir}")
    lines = b"The kettle\n\nWell\n"
    brackets, log = command(*flags, "--format=brackets", stdin=lines)
    assert re.search(r"Translated 3 lines .*: 1 empty.* 2 repaired", log)
    first, empty, last = brackets.splitlines()
    assert read_tree(first).words() == ["The", "kettle"]
    assert (empty, read_tree(last).words()) == ("", ["Well"])
    objects, _ = command(*flags, "--format=jsonl", stdin=lines)
    rows = [json.loads(line) for line in objects.splitlines()]
    assert ["repaired" in row["statuses"] for row in rows] == [True, False, True]
    assert [row.get("tree", "") for row in rows] == brackets.splitlines()
    drawn, _ = command(*flags, "--format=tree", stdin=b"The kettle\n")
    assert re.search(r"[├└]── (\S+ )?The\n", drawn)
