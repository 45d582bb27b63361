"""Evaluations cancelled by a signal, and repeated by the resumed run."""

import pytest

from t2t_jax.training.progress import RunProgress
from tests.training.test_loop import Run

EVERY = {"steps": 9, "log": 100, "evaluate": 4}


@pytest.fixture
def run(monkeypatch):
    return Run(monkeypatch)


def resumed(monkeypatch, run, **changed):
    """Goes on from the last checkpoint of a run, as a new process would."""
    again = Run(monkeypatch)
    for name, value in changed.items():
        setattr(again, name, value)
    again.train(run.saved[-1], **EVERY)
    return again


def test_a_run_whose_evaluation_is_given_up_saves_that_step_and_ends(run):
    run.interrupted = (4,)
    _, progress = run.train(**EVERY)
    assert run.timeline[1:] == ["give up evaluating 4", "save 4: stopped"]
    assert run.steps == 4
    assert progress.pending == ("stopped",)


def test_the_resumed_run_makes_up_for_it_before_its_next_step(monkeypatch, run):
    run.interrupted = (4,)
    run.train(**EVERY)
    again = resumed(monkeypatch, run)
    # The checkpoint says no longer that something is pending.
    assert again.timeline[:3] == ["evaluate 4", "save 4: stopped", "evaluate 8"]
    assert again.steps == 5
    assert again.saved[0].pending == ()
    assert again.saved[-1].pending == ()


def test_a_state_that_proves_to_be_the_best_is_saved_as_that(monkeypatch, run):
    run.interrupted = (4,)
    run.train(**EVERY, save_steps=2)
    assert run.timeline[-1] == "save 4: periodic stopped"
    again = resumed(monkeypatch, run, bleus={4: 17.0})
    assert again.timeline[:2] == ["evaluate 4", "save 4: periodic best"]
    assert again.saved[0].best_score == 17.0


def test_a_worse_one_is_scored_once_all_the_same(monkeypatch, run):
    run.bleus, run.interrupted = {4: 17.0}, (8,)
    run.train(**EVERY)
    again = resumed(monkeypatch, run, bleus={8: 16.0})
    assert again.timeline[:3] == ["evaluate 8", "save 8: stopped", "log 9"]
    assert again.saved[0].pending == ()
    third = Run(monkeypatch)
    third.train(again.saved[0], **EVERY)
    assert third.timeline[:2] == ["log 9", "evaluate 9"]


@pytest.mark.parametrize("pending", [(), ("periodic", "stopped")])
def test_a_run_that_stands_at_or_above_its_last_step_makes_no_more(run, pending):
    for step in (9, 11):
        _, progress = run.train(RunProgress(step, pending=pending), **EVERY)
        assert progress.completes(9)
    assert run.steps == 0
    scored = ["evaluate 9", "save 9: periodic final"]
    scored += ["evaluate 11", "save 11: periodic final"]
    assert run.timeline == (scored if pending else [])


def test_a_run_given_up_at_its_end_is_not_complete_until_it_was_evaluated(
    monkeypatch, run
):
    run.interrupted = (9,)
    _, progress = run.train(**EVERY)
    assert run.timeline[-1] == "save 9: stopped"
    assert not progress.completes(9)
    again = resumed(monkeypatch, run)
    assert again.timeline == ["evaluate 9", "save 9: final"]
    assert again.saved[-1].completes(9)


def test_evaluation_turned_off_on_resume_is_not_made_up_for(monkeypatch, run):
    run.interrupted = (4,)
    run.train(**EVERY, save_steps=2)
    again = Run(monkeypatch)
    again.train(run.saved[-1], **{**EVERY, "evaluate": 0})
    # The checkpoint gets the kinds it was due for, and nothing is pending any more.
    assert again.timeline == ["save 4: periodic", "log 9", "save 9: final"]
    assert again.saved[0].pending == ()


def test_a_second_interruption_changes_nothing(monkeypatch, run):
    run.interrupted = (4,)
    run.train(**EVERY)
    again = resumed(monkeypatch, run, interrupted=(4,))
    assert again.timeline == ["give up evaluating 4"]
    assert again.saved == []
    assert again.steps == 0


def test_interrupted_and_whole_runs_end_alike(monkeypatch, run):
    run.bleus = {4: 5.0, 8: 6.0, 9: 7.0}
    run.train(**EVERY)
    parts = Run(monkeypatch)
    parts.bleus, parts.interrupted = run.bleus, (8,)
    parts.train(**EVERY)
    again = resumed(monkeypatch, parts, bleus=run.bleus)
    ends = [r.saved[-1]._replace(minutes=0, saved_minutes=0) for r in (run, again)]
    assert ends[0] == ends[1]
    assert isinstance(ends[0], RunProgress)


def test_each_pause_says_what_it_is_for(run):
    run.shapes, run.stop_at = ["b"], (5,)
    run.train(**EVERY)
    assert run.pauses == ["compiling", "evaluating step 4", "saving step 5"]
    assert run.waiting_for == "step 6"
