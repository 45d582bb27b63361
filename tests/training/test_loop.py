"""What the loop does when, around steps that are fakes.

Seen to fail: without the branch of `StepMeter._collect`, or what it resets after it;
without `gradient_norm` or either count in `StepMeter.store_in`; with `drain` left out
of the loop's `_save` or `_not_training`; with `StepMeter.add` waiting for nothing; and
with a record made of an empty window.
"""

import json
import math

import pytest

from t2t_jax.training.progress_and_patience import RunProgress
from t2t_jax.types import DataPosition
from tests.training.fake_run import Run

BAD = math.nan
SCORED = {1: 0.0, 2: 7.0, 3: 7.0, 4: 5.0, 5: 11.0, 6: 2.0}


@pytest.fixture
def run(monkeypatch):
    return Run(monkeypatch)


def loaded(progress):
    """Returns a progress as a checkpoint has it."""
    return RunProgress.from_dict(json.loads(json.dumps(progress.to_dict())))


@pytest.mark.parametrize(
    ("given", "intervals", "timeline"),
    [
        (
            {},
            {"steps": 7, "log": 2, "evaluate": 3, "save_steps": 4},
            "log 1, log 2, evaluate 3, log 4, save 4: periodic, log 6, evaluate 6, "
            "log 7, evaluate 7, save 7: final",
        ),
        # never
        ({}, {"steps": 6, "evaluate": 0}, "log 1, log 6, save 6: final"),
        (
            {"bleus": {4: 1.0}},
            {"steps": 4, "save_steps": 2},
            "log 1, save 2: periodic, log 4, evaluate 4, save 4: periodic best final",
        ),
        (
            {},
            {"steps": 23, "evaluate": 0, "save_epochs": 2},
            "log 1, save 10: periodic, save 20: periodic, log 23, save 23: final",
        ),
        # by minutes, once all processes can agree
        (
            {"asked_every": 5},
            {"steps": 12, "evaluate": 0, "save_minutes": 1 / 60},
            "log 1, save 5: periodic, save 10: periodic, log 12, save 12: final",
        ),
        # a stop is saved once, at the last step there is none
        ({"stop_at": {4}}, {"steps": 9, "log": 4}, "log 1, log 4, save 4: stopped"),
        ({"stop_at": {4}}, {"steps": 4}, "log 1, log 4, evaluate 4, save 4: final"),
        # steps are waited for before anything else
        (
            {"losses": {3: BAD}},
            {"steps": 4, "save_steps": 3},
            "log 1, skip 3, save 3: periodic, log 4, evaluate 4, save 4: final",
        ),
        (
            {"interrupted": (4,)},
            {"steps": 9, "evaluate": 4},
            "log 1, give up evaluating 4, save 4: stopped",
        ),
    ],
    ids=str,
)
def test_timeline(monkeypatch, given, intervals, timeline):
    run = Run(monkeypatch, **given)
    progress = run.train(**intervals)
    assert ", ".join(run.timeline) == timeline
    assert run.steps == progress.step


def test_a_new_best_is_saved_and_an_equal_or_lower_score_is_not(run):
    run.bleus = SCORED
    progress = run.train(steps=6, evaluate=1)
    saves = ["save 1: best", "save 2: best", "save 5: best", "save 6: final"]
    assert run.saves == saves
    assert [p.best_score for p in run.saved] == [0.0, 7.0, 11.0, 11.0]
    assert progress.best_score == 11.0


def test_of_equal_scores_the_lower_loss_is_better(run):
    run.bleus = dict.fromkeys(range(1, 6), 0.0)
    run.dev_losses = {1: 6.5, 2: 6.25, 3: 6.25, 4: BAD, 5: 6.0}
    progress = run.train(steps=6, evaluate=1, patience=4)
    saves = ["save 1: best", "save 2: best", "save 5: best", "save 6: final"]
    assert run.saves == saves
    assert progress.best_loss == 6.0
    assert loaded(progress) == progress


def test_minutes_are_counted_without_evaluating_and_saving(monkeypatch, run):
    # 60 steps of a second each are a minute, whatever the rest takes.
    progress = run.train(steps=150, evaluate=7, save_minutes=1.0)
    assert run.saves == ["save 60: periodic", "save 120: periodic", "save 150: final"]
    assert progress.minutes == pytest.approx(2.5)
    assert progress.saved_minutes == pytest.approx(2.0)
    again = Run(monkeypatch)
    before = RunProgress(step=40, minutes=40 / 60, position=DataPosition(8, 0))
    again.train(before, steps=70, save_minutes=1.0)
    assert again.timeline[0] == "save 60: periodic"


@pytest.mark.parametrize("asked", range(1, 9))
def test_a_stop_that_comes_at_any_moment_finds_its_step_saved(run, asked):
    questions = iter([False] * (asked - 1))
    run.stop.should_stop = lambda step: next(questions, True)
    progress = run.train(steps=1_000)
    assert progress.step < 10
    assert [p.step for p in run.saved] == [progress.step]


def test_a_record_covers_the_steps_since_the_last_one(run):
    run.losses = {1: 1.0, 2: 3.0, 3: 7.0, 4: 9.0}
    run.train(steps=4, log=3, evaluate=1, save_steps=1)
    found = [(r["step"], r["loss"], r["epoch"], r["batch"]) for r in run.records]
    assert found == [(1, 1.0, 0, 0), (3, 5.0, 0, 2), (4, 9.0, 0, 3)]
    assert run.records[1]["gradient_norm"] == 2.5  # of step 3
    # One token a second: evaluating and saving took none of the time.
    for record in run.records:
        assert record["target_tokens_per_second"] == pytest.approx(1.0)


def test_a_record_says_what_its_process_spent_its_time_on(run):
    run.shapes, run.wait = ["long"] * 9, 3.0
    run.train(steps=5, log=1, evaluate=2, save_steps=4)
    spent = {"training": 5, "data": 15, "compiling": 200, "evaluating": 2_000}
    assert run.records[-1]["wall_seconds"] == spent | {"saving": 500, "other": 0}
    assert sum(run.records[-1]["wall_seconds"].values()) == run.clock - 1_500  # the end


def test_a_step_is_compiled_for_each_shape_once_and_outside_the_training_time(run):
    run.shapes, run.ready = ["short", "short", "long", "short", "long"], set()
    progress = run.train(steps=5, log=2)
    assert run.timeline[:4] == ["compile short", "log 1", "log 2", "compile long"]
    assert run.shapes == []
    assert progress.minutes == pytest.approx(5 / 60)
    for record in run.records:
        assert record["target_tokens_per_second"] == pytest.approx(1.0)


def test_one_batch_is_not_shown_as_a_jump_of_the_loss(run):
    run.losses = {6: 12.0}
    run.train(steps=10, log=5, show_seconds=1)
    assert [record["loss"] for record in run.records] == [2.0, 2.0, 4.0]
    shown = dict(run.shown)
    # Steps 2 to 5 are in the window before that of 6 to 10.
    assert shown[6] == (4 * 2.0 + 12.0) / 5
    assert shown[7] == (12.0 + 2.0) / 2
    assert shown[10] == 4.0


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_step_without_an_update_is_told_and_enters_no_figure(run, loss):
    run.losses = {1: 1.0, 2: 3.0, 3: loss, 4: 7.0}
    progress = run.train(steps=4, log=4)
    assert run.timeline[:3] == ["log 1", "skip 3", "log 4"]
    assert run.skipped == [
        {"step": 3, "kind": "skipped", "loss": None, "gradient_norm": 2.5}
        | {"in_a_row": 1, "epoch": 0, "batch": 2}
    ]
    _, record = run.records
    assert (record["loss"], record["target_tokens"], record["skipped"]) == (5, 2, 1)
    assert (progress.skipped, progress.skipped_in_a_row) == (1, 0)


def test_a_window_without_an_update_leaves_no_record(run):
    run.losses = {3: BAD, 4: BAD}
    run.train(steps=6, log=2, show_seconds=2.0)
    assert [record["step"] for record in run.records] == [1, 2, 6]
    assert [step for step, _ in run.shown] == [1, 5, 6]
    assert run.records[-1]["skipped"] == 2
    # Of a window of its own: a token a second, and not two in four.
    assert run.records[-1]["target_tokens_per_second"] == pytest.approx(1.0)


def test_the_gradient_norm_of_a_record_is_of_its_last_update(run):
    run.losses = {3: BAD, 4: BAD}
    run.train(steps=4, log=4)
    assert run.records[-1]["gradient_norm"] == 1.5  # of step 2


def test_a_run_ends_when_evaluations_stay_without_a_better_score(run):
    run.bleus = {2: 5.0, 4: 7.0, 6: 7.0, 8: 6.0, 10: 9.0}
    progress = run.train(steps=20, evaluate=2, patience=2)
    assert run.saves == ["save 2: best", "save 4: best", "save 8: final"]
    assert progress.best_score == 7.0
    ends = [progress.completes(20, patience=patience) for patience in (2, 3, 0)]
    assert ends == [True, False, False]


def test_a_better_score_and_none_at_all_do_not_use_up_the_patience(run):
    run.bleus = {2: 5.0, 6: 4.0, 8: 6.0, 10: 5.0}
    progress = run.train(steps=11, evaluate=2, patience=2)
    # Step 4 was not scored; step 8 is better, and the last step is scored too.
    assert progress.step == 11
    assert progress.stale_evaluations == 1


def test_a_resumed_run_ends_at_the_same_step(monkeypatch, run):
    run.bleus, run.stop_at = {2: 5.0, 4: 4.0, 6: 3.0, 8: 2.0}, (5,)
    run.train(steps=20, evaluate=2, patience=3)
    again = Run(monkeypatch, bleus=run.bleus)
    progress = again.train(run.saved[-1], steps=20, evaluate=2, patience=3)
    assert again.timeline[-1] == "save 8: final"
    for patience, is_over in ((3, True), (4, False)):
        third = Run(monkeypatch)
        third.train(progress, steps=20, evaluate=2, patience=patience)
        assert (third.steps == 0) == is_over


@pytest.mark.parametrize(
    ("given", "again", "changed", "timeline"),
    [
        # a state that proves to be the best is saved as that
        (
            {"interrupted": (4,)},
            {"bleus": {4: 17.0, 8: 16.0}},
            {"save_steps": 0},
            "evaluate 4, save 4: periodic best, evaluate 8, log 9, evaluate 9, "
            "save 9: final",
        ),
        # counts once for the patience
        (
            {"interrupted": (8,), "bleus": {4: 5.0}},
            {"bleus": {8: 5.0}},
            {"patience": 1},
            "evaluate 8, save 8: periodic final",
        ),
    ],
    ids=str,
)
def test_a_cancelled_evaluation_is_redone(monkeypatch, given, again, changed, timeline):
    every = {"steps": 9, "evaluate": 4, "save_steps": 4}
    first, second = Run(monkeypatch, **given), Run(monkeypatch, **again)
    progress = first.train(**every)
    assert first.saves[-1].endswith(" ".join(progress.pending))
    assert not progress.completes(9)
    second.train(loaded(progress), **every | changed)
    assert ", ".join(second.timeline) == timeline
    assert [saved.pending for saved in second.saved] == [()] * len(second.saved)


@pytest.mark.parametrize("pending", [(), ("periodic", "stopped")])
@pytest.mark.parametrize("step", [9, 11])
def test_a_run_at_or_above_its_last_step_takes_no_more(run, pending, step):
    progress = run.train(RunProgress(step, pending=pending), steps=9, evaluate=4)
    assert progress.completes(9)
    assert run.steps == 0
    scored = [f"evaluate {step}", f"save {step}: periodic final"]
    assert run.timeline == (scored if pending else [])


def test_each_pause_says_what_it_is_for(run):
    run.shapes, run.stop_at = ["b"], (5,)
    run.train(steps=9, evaluate=4)
    assert run.pauses == ["compiling", "evaluating step 4", "saving step 5"]
