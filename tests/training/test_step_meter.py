"""The metrics of skipped updates.

Seen to fail: without the branch of `StepMeter._collect`, or what it resets after it;
without `gradient_norm` or either count in `StepMeter.store_in`; with `drain` left out
of the loop's `_save` or `_not_training`; with `StepMeter.add` waiting for nothing; and
with a record made of an empty window.
"""

import json
import math

import pytest

from t2t_jax.errors import DivergedError
from t2t_jax.training.progress import RunProgress
from t2t_jax.types import DataPosition
from tests.training.fake_run import Run


@pytest.fixture
def run(monkeypatch):
    return Run(monkeypatch)


BAD = math.nan


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_step_without_an_update_is_told_and_enters_no_figure(run, loss):
    run.losses = {1: 1.0, 2: 3.0, 3: loss, 4: 7.0}
    _, progress = run.train(steps=4, log=4)
    assert run.timeline[:3] == ["log 1", "skip 3", "log 4"]
    assert run.skipped == [
        {
            "step": 3,
            "kind": "skipped",
            "loss": None,
            "gradient_norm": 2.5,
            "in_a_row": 1,
            "epoch": 0,
            "batch": 2,
        }
    ]
    _, record = run.records
    assert (record["loss"], record["target_tokens"], record["skipped"]) == (5, 2, 1)
    assert (progress.skipped, progress.skipped_in_a_row) == (1, 0)


def test_a_record_names_the_batch_of_its_step(run):
    run.train(steps=7, log=3)
    places = [(r["step"], r["epoch"], r["batch"]) for r in run.records]
    assert places == [(1, 0, 0), (3, 0, 2), (6, 1, 0), (7, 1, 1)]


def test_a_clock_that_stands_still_ends_no_run(run, monkeypatch):
    monkeypatch.setattr("time.perf_counter", lambda: 7.0)
    _, progress = run.train(steps=2, log=1)
    assert progress.step == 2
    assert [record["step"] for record in run.records] == [1, 2]


def test_one_batch_is_not_shown_as_a_jump_of_the_loss(run):
    run.losses = {6: 12.0}
    run.train(steps=10, log=5, show_seconds=1)
    assert [record["loss"] for record in run.records] == [2.0, 2.0, 4.0]
    shown = dict(zip(run.shown, run.shown_losses, strict=True))
    # Steps 2 to 5 are in the window before that of 6 to 10.
    assert shown[6] == (4 * 2.0 + 12.0) / 5
    assert shown[7] == (12.0 + 2.0) / 2
    assert shown[10] == 4.0


def test_a_window_without_an_update_leaves_no_record(run):
    run.losses = {3: BAD, 4: BAD}
    run.train(steps=6, log=2, show_seconds=2.0)
    assert [record["step"] for record in run.records] == [1, 2, 6]
    assert run.shown == [1, 5, 6]
    assert run.records[-1]["skipped"] == 2
    # Of a window of its own: a token a second, and not two in four.
    assert run.records[-1]["target_tokens_per_second"] == pytest.approx(1.0)


def test_the_gradient_norm_of_a_record_is_of_its_last_update(run):
    run.losses = {3: BAD, 4: BAD}
    run.train(steps=4, log=4)
    assert run.records[-1]["gradient_norm"] == 1.5  # of step 2


def test_steps_without_an_update_end_the_run_two_steps_later(run):
    run.losses = dict.fromkeys(range(3, 100), BAD)
    run.endured = 4
    with pytest.raises(DivergedError, match="enough"):
        run.train(steps=99, log=50)
    assert run.timeline[1:] == ["skip 3", "skip 4", "skip 5", "skip 6"]
    assert run.steps == 8


def test_steps_are_in_a_row_until_an_update(run):
    run.losses = dict.fromkeys((2, 3, 5, 6, 7), BAD)
    run.train(steps=9)
    assert [record["in_a_row"] for record in run.skipped] == [1, 2, 1, 2, 3]


def test_what_is_saved_has_been_looked_at(run):
    run.losses = {3: BAD}
    run.train(steps=4, save_steps=3)
    assert run.timeline[1:3] == ["skip 3", "save 3: periodic"]
    assert (run.saved[0].skipped, run.saved[0].skipped_in_a_row) == (1, 1)
    run.timeline.clear()
    run.train(steps=4, evaluate=3)
    assert run.timeline[1:3] == ["skip 3", "evaluate 3"]


def test_nothing_is_evaluated_or_saved_of_a_run_that_diverged(run):
    run.losses, run.endured = {3: BAD}, 1
    for intervals in ({"save_steps": 3}, {"evaluate": 3}):
        with pytest.raises(DivergedError, match="enough"):
            run.train(steps=9, **intervals)
    run.stop_at = {3}
    with pytest.raises(DivergedError, match="enough"):
        run.train(steps=9)
    assert run.timeline == ["log 1", "skip 3"] * 3


@pytest.mark.parametrize("stop", range(1, 8))
def test_a_resumed_run_counts_on_and_writes_the_same_records(monkeypatch, stop):
    losses = {n: float(n) for n in range(1, 12)} | dict.fromkeys((3, 4, 6, 7, 8), BAD)

    def run_to(steps, progress=None):
        one = Run(monkeypatch)
        one.losses, one.stop_at = losses, {steps}
        _, progress = one.train(progress, steps=9, log=3)
        saved = json.loads(json.dumps(progress._asdict()))  # as a checkpoint keeps it
        saved["position"] = DataPosition(*saved["position"])
        written = [
            {k: v for k, v in r.items() if k != "target_tokens_per_second"}
            for r in [*one.records, *one.skipped]
        ]
        return RunProgress(**saved), written

    end, expected = run_to(9)
    halfway, first = run_to(stop)
    resumed, second = run_to(9, halfway)
    by_step = [
        sorted(written, key=lambda r: (r["step"], r["kind"]))
        for written in (expected, first + second)
    ]
    assert by_step[0] == by_step[1]
    assert resumed == end
    assert end.skipped == 5


def test_steps_in_flight_are_waited_for_before_the_next_is_compiled(run):
    run.shapes, run.ready, run.losses = ["short", "long"], {"short"}, {1: BAD}
    run.train(steps=2)
    assert run.timeline[:2] == ["skip 1", "compile long"]
