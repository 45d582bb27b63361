"""Runs take turns, an interruption loses no slice, and figures are first crossings."""

import json

import pytest
import time_to_score
from score_curves import Curve, Point, markdown, summarise
from time_to_score import Results, changes_of, main

import t2t_jax
from tests.integration.tiny import TINY

COMMON = "--set=" + ",".join(
    f"{key}={value}" for key, value in TINY.items() if key.startswith(("d", "m", "v"))
)


@pytest.fixture
def trained(monkeypatch):
    """Replaces training; returns the seeds, rates and steps that are trained."""
    calls = []

    def train(trial, step, folder):
        rate = trial.values["optimizer"]["peak_learning_rate"]
        calls.append((trial.seed, rate, step))
        bleu = 10.0 * step * rate - trial.seed
        return Point(step, 2.0 * step, bleu, 0.5)

    monkeypatch.setattr(time_to_score, "train_slice", train)
    return calls


def _argv(out, *more):
    return [
        *(f"--out={out}", "--config=phrasebook", "--steps=12", "--every=5"),
        *("--set=optimizer.peak_learning_rate=1.0", "--seeds=0,3"),
        *("--variant=optimizer.peak_learning_rate=0.5", *more),
    ]


def test_all_take_turns_slice_by_slice_in_another_order_each(tmp_path, trained):
    assert main(_argv(tmp_path)) == 0
    everyone = {(seed, rate) for seed in (0, 3) for rate in (1.0, 0.5)}
    rounds = [trained[k : k + 4] for k in range(0, 12, 4)]
    for one, step in zip(rounds, (5, 10, 12), strict=True):
        assert {call[:2] for call in one} == everyone
        assert {call[2] for call in one} == {step}
    assert len({one[0][:2] for one in rounds}) == 3  # who begins
    assert (tmp_path / "curves.png").stat().st_size > 1_000


def test_a_run_ends_with_the_highest_target_or_its_minutes(tmp_path, trained):
    main(_argv(tmp_path / "a", "--targets=20,47"))
    assert max(step for _, rate, step in trained if rate == 1.0) == 5
    assert max(step for _, rate, step in trained if rate == 0.5) == 10
    rows = (tmp_path / "a/rows.md").read_text().splitlines()
    assert rows[2] == (
        "| as it is | 2 | 50.00, 47.00 | 5 | 10.0 | 2,000 | 0.5 | 5 | 10.0 | 5 | 10.0 |"
    )
    trained.clear()
    main(_argv(tmp_path / "b", "--minutes=0.3"))  # 18 s: 9 steps
    assert {step for *_, step in trained} == {5, 10}


def test_a_target_that_some_reach_has_their_median_and_number():
    curves = [
        Curve("x", seed, [Point(10, 20.0, bleu, 1.0), Point(20, 40.0, 9.0, 1.0)])
        for seed, bleu in enumerate((3.0, 5.0, 8.0))
    ]
    (row,) = summarise(curves, [8.0, 9.5])
    assert row["reached"]["8"] == {"runs": 3, "steps": 20, "seconds": 40.0}
    assert row["reached"]["9.5"]["runs"] == 0
    assert "not reached" in markdown([row], [8.0, 9.5])
    (row,) = summarise(
        [*curves[:2], curves[2]._replace(points=curves[2].points[:1])], [9]
    )
    assert "20 (2 of 3) | 40.0 (2 of 3)" in markdown([row], [9])


def test_an_interrupted_one_goes_on_and_another_is_refused(
    tmp_path, trained, monkeypatch, capsys
):
    working = time_to_score.train_slice

    def interrupted(trial, step, folder):
        if len(trained) == 5:
            raise KeyboardInterrupt
        return working(trial, step, folder)

    monkeypatch.setattr(time_to_score, "train_slice", interrupted)
    assert main(_argv(tmp_path)) == 130
    assert "The same command goes on." in capsys.readouterr().err
    monkeypatch.setattr(time_to_score, "train_slice", working)
    assert main(_argv(tmp_path)) == 0
    assert len(trained) == len(set(trained)) == 12
    assert main([*_argv(tmp_path), "--every=6"]) == 73
    assert "differs in every. Choose another --out" in capsys.readouterr().err
    assert main([*_argv(tmp_path), "--steps=14"]) == 0  # a larger budget
    assert [step for *_, step in trained[12:]] == [14] * 4


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--variant=optimizer.nam=muon", "optimizer.nam"),
        ("--variant=muon", "must be KEY=VALUE"),
        ("--set=model.num_heads=0", "num_heads"),
        ("--config=absent", "absent"),
    ],
)
def test_errors_come_before_training(tmp_path, trained, capsys, flag, message):
    assert main([*_argv(tmp_path), flag]) in (64, 66, 78)
    assert message in capsys.readouterr().err
    assert not trained


def test_commas_in_the_text_of_a_corpus_are_its_own():
    assert changes_of("data.train=text:a.en,b,seed=3,optimizer.name=muon") == {
        **{"data.train": "text:a.en,b", "seed": 3, "optimizer.name": "muon"},
    }


def test_a_rehearsal_trains_scores_and_goes_on(tmp_path, monkeypatch, capsys):
    argv = [
        *(f"--out={tmp_path}", "--config=phrasebook", COMMON, "--steps=4"),
        *("--set=evaluation.bleu_sentences=3", "--every=2", "--targets=101", "--json"),
        f"--set=data.cache_dir={tmp_path}/cache",
    ]
    train = t2t_jax.train
    monkeypatch.setattr(t2t_jax, "train", _once(train))
    assert main(argv) == 130
    monkeypatch.setattr(t2t_jax, "train", train)
    assert main(argv) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["variant"], row["steps"]) == ("as it is", 4)
    assert row["reached"]["101"] == {"runs": 0, "steps": None, "seconds": None}
    saved = json.loads((tmp_path / "results.json").read_text())
    first, second = saved["points"]["as_it_is,seed=0"]
    assert (first["step"], second["step"]) == (2, 4)
    assert 0 < first["seconds"] < second["seconds"]
    assert first["evaluation_seconds"] > 0
    assert saved["machine"]["versions"]["jax"]
    again = Results(tmp_path / "results.json", saved["settings"])
    assert not again.failures


def _once(train):
    calls = []

    def train_once(*args, **options):
        calls.append(args)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return train(*args, **options)

    return train_once
