"""A loss that is no number, at one step and at many, on the real command line.

Seen to fail: with `train_step` unguarded in `Run._make_step`; without
`check_divergence` in `RunCallbacks.skip`; with `skipped` left out of the learning
rate's count; with the counts left out of `StepMeter.store_in`; and without
`require_same` in `cli/modes/show_batch.py`.
"""

import json
import shlex

import numpy as np
import pytest

from t2t_jax.data.corpora.open import open_corpus
from tests.faults import running
from tests.integration import tiny

# Nothing but steps and checkpoints, as many as there are.
KEYS = {
    "evaluation__every_steps": 0,
    "checkpoint__every_steps": 1,
    "checkpoint__keep": 30,
    "logging__every_steps": 3,
}


OTHER = "--config.data.train=phrasebook:train:299"


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A run of 9 steps, of which step 7 has a loss that is no number."""
    workdir = tmp_path_factory.mktemp("once") / "ein Lauf"
    said = running.finish(workdir, fault="nan@7", steps=9, **KEYS)
    return workdir, said


def test_one_bad_step_changes_no_parameter_and_no_moment(once):
    workdir, _ = once
    before, after = (running.parameters(workdir, step) for step in (6, 7))
    running.require_bit_equal(before, after)
    later = running.parameters(workdir, 8)
    assert any((later[path] != after[path]).any() for path in after)


def test_one_bad_step_is_in_the_records_and_in_no_figure(once):
    records = running.metrics(once[0])
    (skipped,) = (record for record in records if record["kind"] == "skipped")
    assert skipped == {
        **{"step": 7, "kind": "skipped", "loss": None, "gradient_norm": None},
        **{"in_a_row": 1, "epoch": 0, "batch": 6},
    }
    trained = [record for record in records if record["kind"] == "train"]
    found = [(r["step"], r["skipped"]) for r in trained]
    assert found == [(1, 0), (3, 0), (6, 0), (9, 1)]
    # The warm-up is of 4,000 steps, and its rate grows with each update that was made.
    first, *rates = (record["learning_rate"] for record in trained)
    assert np.divide(rates, first) == pytest.approx([3, 6, 8], rel=1e-6)  # float32
    order = [(r["step"], r["kind"]) for r in records]
    assert order.index((7, "skipped")) == order.index((6, "train")) + 1


def test_the_warning_ends_in_the_flags_that_show_the_text(once):
    _, said = once
    (line,) = (line for line in said.splitlines() if "WARNING" in line)
    assert "] WARNING: Skipped the update of step 7 (loss not finite" in line
    flags = shlex.split(line.partition("To print its text: ")[2])
    done = tiny.succeed(*flags, fresh=True)
    assert b"Traceback" not in done.stderr
    assert b"Step 7 reads batch 6 of epoch 0: " in done.stderr
    heading, *rows = done.stdout.decode().splitlines()
    assert heading == "corpus\tline\tsource\ttarget"
    lines = list(open_corpus(tiny.TINY["data.train"]))
    assert len(rows) > 1
    for row in rows:
        corpus, line_number, source, target = row.split("\t")
        assert corpus == tiny.TINY["data.train"]
        assert (source, target) == lines[int(line_number) - 1]


def test_many_bad_steps_end_the_run_with_the_last_good_state_saved(tmp_path):
    workdir = tmp_path / "run"
    said = running.finish(workdir, code=76, fault="nan@5-24", steps=40, **KEYS)
    assert "Traceback" not in said
    assert (
        "error: Training diverged: skipped the updates of steps 5 to 14 "
        "(training.max_bad_steps=10). Step 14, batch 13 of epoch 0, had loss not "
        "finite"
    ) in said
    newest = running.saved(workdir)[-1]
    assert newest == 13
    good, last = (running.parameters(workdir, step) for step in (4, newest))
    running.require_bit_equal(good, last)
    # What was saved knows how long it has been going on, and goes on counting.
    again = running.finish(workdir, code=76, fault="nan@5-24", steps=40, **KEYS)
    assert "Resuming from step 13" in again
    assert "skipped the updates of steps 5 to 14" in again
    records = running.metrics(workdir)
    skipped = [r["step"] for r in records if r["kind"] == "skipped"]
    assert skipped == list(range(5, 15))
    # And where it was an accident, the same command goes on to the end.
    running.finish(workdir, steps=16, **KEYS)
    assert running.metrics(workdir)[-1]["kind"] == "final"


def test_finite_divergence_is_warned_of_once_and_the_best_stays_the_best(tmp_path):
    keys = {**KEYS, "evaluation__every_steps": 4, "evaluation__max_unfinished": 1.0}
    rate = {"optimizer__peak_learning_rate": 50.0, "optimizer__warmup_steps": 5}
    said = running.finish(tmp_path / "run", steps=16, **keys, **rate)
    assert said.count("WARNING: The development loss at step") == 1
    assert "perplexity (not smoothed) > 1e9" in said
    evaluated = [r for r in running.metrics(tmp_path / "run") if r["kind"] == "eval"]
    best = max(evaluated, key=lambda record: (record["bleu"], -record["loss"]))
    status = tiny.run("status", f"--workdir={tmp_path / 'run'}", "--format=json")
    assert json.loads(status.stdout)["best"]["step"] == best["step"]


def test_a_run_that_is_interrupted_among_bad_steps_is_the_same_run(tmp_path):
    keys = {**KEYS, "checkpoint__every_steps": 5}
    for name, ends in (("whole", [12]), ("parts", [6, 12])):
        for steps in ends:
            running.finish(tmp_path / name, fault="nan@4-9", steps=steps, **keys)
    whole, parts = (tmp_path / name for name in ("whole", "parts"))
    running.require_same(whole, parts, 12)
    kinds = [record["kind"] for record in running.metrics(whole)]
    assert kinds.count("skipped") == 6


@pytest.mark.parametrize(
    ("settings", "fault", "told"),
    [
        (
            {"training__on_nonfinite": "stop"},
            "nan@4",
            "update of step 4 (training.on_nonfinite=stop). Step 4, batch 3 of",
        ),
        (
            # No gradient is as small as that.
            {"training__skip_gradient_norm": 1e-6, "training__max_bad_steps": 3},
            "",
            "steps 1 to 3 (training.max_bad_steps=3). Step 3, batch 2 of epoch 0",
        ),
    ],
)
def test_a_run_ends_as_it_is_configured_to(tmp_path, settings, fault, told):
    said = running.finish(
        tmp_path / "run", code=76, fault=fault, steps=30, **KEYS, **settings
    )
    assert "error: Training diverged: skipped the update" in said
    assert told in said
    assert ("above training.skip_gradient_norm" in said) == (fault == "")


@pytest.mark.soak
def test_several_processes_leave_the_same_updates_out_and_end_alike(tmp_path):
    workdir = tmp_path / "run"
    said = running.finish(
        workdir, code=76, fault="nan@4-30", processes=2, devices=2, steps=30, **KEYS
    )
    assert said.count("skipped the updates of steps 4 to 13") == 2
    assert "Traceback" not in said
    good, last = (running.parameters(workdir, step) for step in (3, 12))
    running.require_bit_equal(good, last)
    lines = (workdir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds.count("skipped") == 10  # by the first process, and by no other


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--step=1000000"], 64, "is after the last step of this run"),
        (["--step=3", OTHER], 65, "other content of: train"),
    ],
)
def test_what_shows_no_batch_says_why(once, flags, code, words):
    done = tiny.run("--mode=show_batch", f"--workdir={once[0]}", *flags)
    running.refused(done, code, words)
    assert done.stdout == b""
