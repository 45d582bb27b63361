import json

import pytest

from t2t_jax.training.progress import RunProgress
from t2t_jax.types import DataPosition
from tests.training.fake_run import Run


@pytest.fixture
def run(monkeypatch):
    return Run(monkeypatch)


def test_logs_evaluations_and_checkpoints_come_when_they_are_due(run):
    run.train(steps=7, log=2, evaluate=3, save_steps=4)
    assert run.timeline == [
        "log 1",
        "log 2",
        "evaluate 3",
        "log 4",
        "save 4: periodic",
        "log 6",
        "evaluate 6",
        "log 7",
        "evaluate 7",
        "save 7: final",
    ]


def test_the_last_step_is_logged_evaluated_and_saved_once(run):
    state, progress = run.train(steps=3, log=3, evaluate=3, save_steps=3)
    saved = "save 3: periodic final"
    assert run.timeline == ["log 1", "log 3", "evaluate 3", saved]
    assert (state, progress.step, run.steps) == (3, 3, 3)


def test_an_interval_of_0_is_never(run):
    run.train(steps=6, evaluate=0)
    assert run.timeline == ["log 1", "log 6", "save 6: final"]


def test_evaluations_further_apart_than_the_run_is_long_are_one_at_its_end(run):
    run.train(steps=6, evaluate=7)
    assert run.timeline == ["log 1", "log 6", "evaluate 6", "save 6: final"]


def test_a_new_best_is_saved_and_an_equal_or_lower_score_is_not(run):
    run.bleus = {1: 0.0, 2: 7.0, 3: 7.0, 4: 5.0, 5: 11.0, 6: 2.0}
    _, progress = run.train(steps=6, evaluate=1)
    saves = [event for event in run.timeline if event.startswith("save")]
    assert saves == ["save 1: best", "save 2: best", "save 5: best", "save 6: final"]
    assert progress.best_score == 11.0
    assert [p.best_score for p in run.saved] == [0.0, 7.0, 11.0, 11.0]


def test_of_equal_scores_the_lower_loss_is_better(run):
    run.bleus = {1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0}
    run.dev_losses = {1: 6.5, 2: 6.25, 3: 6.25, 4: float("nan"), 5: 6.0}
    _, progress = run.train(steps=6, evaluate=1, patience=4)
    saves = [event for event in run.timeline if event.startswith("save")]
    assert saves == ["save 1: best", "save 2: best", "save 5: best", "save 6: final"]
    assert progress.best_loss == 6.0
    again = RunProgress.from_dict(json.loads(json.dumps(progress.to_dict())))
    assert again == progress


def test_progress_of_older_versions_has_no_loss_of_the_best(run):
    saved = RunProgress(step=3, best_score=7.0).to_dict()
    assert "best_loss" not in saved
    assert RunProgress.from_dict(saved).best_loss == float("inf")


def test_a_last_step_can_be_periodic_best_and_final_at_once(run):
    run.bleus = {4: 1.0}
    run.train(steps=4, save_steps=2)
    assert run.timeline[-1] == "save 4: periodic best final"


def test_minutes_are_counted_without_evaluating_and_saving(run):
    # 60 steps of a second each are a minute, whatever the rest takes.
    _, progress = run.train(steps=150, evaluate=7, save_minutes=1.0)
    saves = [event for event in run.timeline if event.startswith("save")]
    assert saves == ["save 60: periodic", "save 120: periodic", "save 150: final"]
    assert progress.minutes == pytest.approx(2.5)
    assert progress.saved_minutes == pytest.approx(2.0)


def test_minutes_go_on_where_a_checkpoint_left_them(run):
    before = RunProgress(step=40, minutes=40 / 60, position=DataPosition(8, 0))
    run.train(before, steps=70, save_minutes=1.0)
    assert run.timeline[0] == "save 60: periodic"


def test_epochs_are_counted_by_the_position_after_the_batch(run):
    _, progress = run.train(steps=23, save_epochs=2)
    saves = [event for event in run.timeline if event.startswith("save")]
    assert saves == ["save 10: periodic", "save 20: periodic", "save 23: final"]
    assert progress.position == DataPosition(4, 3)


def test_a_run_goes_on_from_its_progress(run):
    before = RunProgress(step=3, position=DataPosition(0, 3), best_score=9.0)
    run.bleus = {4: 8.0, 6: 9.5}
    state, progress = run.train(before, steps=6, evaluate=2, save_steps=4)
    assert run.timeline == [
        "evaluate 4",
        "save 4: periodic",
        "log 6",
        "evaluate 6",
        "save 6: best final",
    ]
    assert (state, run.steps) == (6, 3)
    assert progress.position == DataPosition(1, 1)


def test_a_stop_saves_once_and_returns(run):
    run.stop_at = {4}
    state, progress = run.train(steps=9, log=2)
    assert run.timeline == ["log 1", "log 2", "log 4", "save 4: stopped"]
    assert (state, progress.step, run.steps) == (4, 4, 4)


def test_a_stop_where_a_checkpoint_is_due_anyway_saves_once(run):
    run.stop_at = {4}
    run.train(steps=9, save_steps=2)
    assert run.timeline == ["log 1", "save 2: periodic", "save 4: periodic stopped"]


def test_a_save_by_minutes_waits_until_all_processes_can_agree(run):
    run.asked_every = 5
    run.train(steps=12, save_minutes=1 / 60)
    periodic = [line for line in run.timeline if "periodic" in line]
    assert periodic == ["save 5: periodic", "save 10: periodic"]


def test_a_stop_at_the_last_step_is_no_stop(run):
    run.stop_at = {4}
    _, progress = run.train(steps=4)
    assert run.timeline == ["log 1", "log 4", "evaluate 4", "save 4: final"]
    assert progress.step == 4


def test_a_stop_that_comes_at_any_moment_finds_its_step_saved(run):
    class Sudden:
        """Becomes true at the n-th time that the loop asks."""

        def __init__(self, asked):
            self._asked = asked

        def should_stop(self, step):
            self._asked -= 1
            return self._asked <= 0

        def stop_requested(self):
            return False

    for asked in range(1, 9):
        run.stop, run.saved = Sudden(asked), []
        _, progress = run.train(steps=1_000)
        assert progress.step < 10
        assert [p.step for p in run.saved] == [progress.step]


def test_a_record_covers_the_steps_since_the_last_one(run):
    run.losses = {1: 1.0, 2: 3.0, 3: 7.0, 4: 9.0}
    run.train(steps=4, log=3, evaluate=1, save_steps=1)
    one, first, last = run.records
    assert (one["step"], one["loss"]) == (1, 1.0)
    assert (first["step"], first["kind"], first["loss"]) == (3, "train", 5.0)
    assert (last["step"], last["loss"]) == (4, 9.0)
    assert first["gradient_norm"] == 2.5  # of step 3
    # One token a second: evaluating and saving took none of the time.
    assert first["target_tokens_per_second"] == pytest.approx(1.0)
    assert last["target_tokens_per_second"] == pytest.approx(1.0)


def test_a_step_is_compiled_for_each_shape_once_and_outside_the_training_time(run):
    run.shapes, run.ready = ["short", "short", "long", "short", "long"], set()
    _, progress = run.train(steps=5, log=2)
    assert run.timeline[:4] == ["compile short", "log 1", "log 2", "compile long"]
    assert run.shapes == []
    assert progress.minutes == pytest.approx(5 / 60)
    for record in run.records:
        assert record["target_tokens_per_second"] == pytest.approx(1.0)


def test_a_record_after_a_resume_is_the_one_of_an_uninterrupted_run(monkeypatch):
    losses = {n: float(n) for n in range(1, 9)}
    whole = Run(monkeypatch)
    whole.losses = losses
    whole.train(steps=8, log=5)
    first = Run(monkeypatch)
    first.losses, first.stop_at = losses, {3}
    _, progress = first.train(steps=8, log=5)
    saved = json.loads(json.dumps(progress))  # as a checkpoint keeps it
    position = DataPosition(*saved[1])
    second = Run(monkeypatch)
    second.losses = losses
    second.train(RunProgress(*saved)._replace(position=position), steps=8, log=5)
    for name in ("step", "loss", "nll", "accuracy", "padding_fraction"):
        records = first.records + second.records
        assert [r[name] for r in records] == [r[name] for r in whole.records]
    # The speed is that of this process alone: a token a second, of two steps.
    assert second.records[0]["target_tokens_per_second"] == pytest.approx(1.0)


def test_figures_are_shown_by_the_clock_whatever_the_records(monkeypatch):
    run = Run(monkeypatch, seconds_per_step=4.0)
    run.train(steps=11, log=3, show_seconds=10.0)
    # After 4 s, 16 s, 28 s, 40 s and at the end; the records come at 1, 3, 6, 9, 11.
    assert run.shown == [1, 4, 7, 10, 11]
    run = Run(monkeypatch, seconds_per_step=6.0)
    run.train(steps=7, log=5, show_seconds=10.0)
    assert run.shown == [1, 3, 5, 7]
    assert [record["step"] for record in run.records] == [1, 5, 7]


def test_the_first_step_is_recorded_and_shown_and_enough_for_an_estimate(monkeypatch):
    run = Run(monkeypatch)
    run.train(steps=50, log=1_000, show_seconds=1e6)
    assert run.shown == [1, 20, 50]
    assert [record["step"] for record in run.records] == [1, 50]
    resumed = Run(monkeypatch)
    resumed.train(RunProgress(step=30), steps=60, log=1_000, show_seconds=1e6)
    assert resumed.shown == [31, 50, 60]
    # Records depend on the step alone: a run that was never stopped has none at 31.
    assert [record["step"] for record in resumed.records] == [60]


def test_a_run_ends_when_evaluations_stay_without_a_better_score(run):
    run.bleus = {2: 5.0, 4: 7.0, 6: 7.0, 8: 6.0, 10: 9.0}
    _, progress = run.train(steps=20, evaluate=2, patience=2)
    saves = [event for event in run.timeline if event.startswith("save")]
    assert saves == ["save 2: best", "save 4: best", "save 8: final"]
    assert (progress.step, progress.best_score) == (8, 7.0)
    assert progress.completes(20, patience=2)
    assert not progress.completes(20, patience=3)
    assert not progress.completes(20)


def test_a_better_score_and_none_at_all_do_not_use_up_the_patience(run):
    run.bleus = {2: 5.0, 6: 4.0, 8: 6.0, 10: 5.0}
    _, progress = run.train(steps=11, evaluate=2, patience=2)
    # Step 4 was not scored; step 8 is better, and the last step is scored too.
    assert progress.step == 11
    assert progress.stale_evaluations == 1


def test_a_resumed_run_ends_at_the_same_step(monkeypatch, run):
    run.bleus = {2: 5.0, 4: 4.0, 6: 3.0, 8: 2.0}
    run.stop_at = (5,)
    run.train(steps=20, evaluate=2, patience=3)
    again = Run(monkeypatch)
    again.bleus = run.bleus
    _, progress = again.train(run.saved[-1], steps=20, evaluate=2, patience=3)
    assert again.timeline[-1] == "save 8: final"
    assert progress.step == 8
    third = Run(monkeypatch)
    third.train(progress, steps=20, evaluate=2, patience=3)
    assert third.steps == 0
    # More patience trains further.
    third.train(progress, steps=20, evaluate=2, patience=4)
    assert third.steps > 0


def test_an_evaluation_that_was_cancelled_counts_once(monkeypatch, run):
    run.bleus, run.interrupted = {2: 5.0}, (4,)
    run.train(steps=20, evaluate=2, patience=1)
    assert run.timeline[-1] == "save 4: stopped"
    again = Run(monkeypatch)
    again.bleus = {4: 5.0}
    _, progress = again.train(run.saved[-1], steps=20, evaluate=2, patience=1)
    assert again.timeline == ["evaluate 4", "save 4: final"]
    assert progress.completes(20, patience=1)
