"""`--mode=average`, as a user runs it: one mean, and the mean that slides."""

import json
import shlex
from importlib.util import find_spec

import pytest

from t2t_jax import load
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import average
from t2t_jax.errors import DataError, InputMissingError, OutputError, UserError
from t2t_jax.evaluation.bleu import corpus_scores
from tests.faults.running import refused
from tests.integration import tiny

HEADER = ["steps", "first", "newest", "average_bleu", "newest_bleu", "gaps"]


def run(workdir, *flags):
    """Runs the mode in this process."""
    options = parse_argv(["--mode=average", f"--workdir={workdir}", *flags])
    return average.run(options)


@pytest.fixture
def workdir(newspaper, tmp_path):
    """The run, in a directory whose results are this test's own."""
    path = tmp_path / "über uns"
    (path / "checkpoints").mkdir(parents=True)
    for file in newspaper.iterdir():
        if file.is_file():
            (path / file.name).symlink_to(file)
    for step in (newspaper / "checkpoints").iterdir():
        (path / "checkpoints" / step.name).symlink_to(step)
    return path


def test_an_average_is_a_model_that_translates_and_is_not_trained(workdir, tmp_path):
    to = tmp_path / "average"
    flags = ("--mode=average", f"--workdir={workdir}", f"--to={to}", "--last=2")
    done = tiny.succeed(*flags, fresh=True)
    assert b"checkpoints 44, 55 into" in done.stderr
    used = tiny.succeed("--mode=translate", f"--workdir={to}", stdin=b"A man.\n\n")
    assert used.stdout.count(b"\n") == 2
    refused(tiny.run(f"--workdir={to}", "--config.steps=70"), 64, "is a model")
    refused(tiny.run(*flags), 73, "new or empty")


def test_a_sliding_average_shows_a_row_a_window_and_how_to_write_the_best(workdir):
    flags = ("--mode=average", f"--workdir={workdir}", "--sliding", "--last=2")
    done = tiny.succeed(*flags)
    header, *rows = (line.split("\t") for line in done.stdout.decode().splitlines())
    assert header == HEADER
    assert [row[0] for row in rows] == ["11,22", "22,33", "33,44", "44,55"]
    found = json.loads((workdir / "averages" / "last=2.json").read_text())
    for row, window in zip(rows, found["windows"], strict=True):
        assert row == [
            ",".join(map(str, window["steps"])),
            *map(str, window["steps"]),
            *(f"{window[name]:.2f}" for name in ("average_bleu", "newest_bleu")),
            "11 steps",
        ]
        assert (window["first"], window["newest"]) == tuple(window["steps"])
        assert window["forced"] is False
        assert (window["unit"], window["gaps"]) == ("steps", [11])
    best = max(found["windows"], key=lambda window: window["average_bleu"])
    assert best["average_bleu"] > 0
    assert (found["best"], found["last"]) == (best["steps"], 2)
    assert found["sentences"] == 5  # evaluation.bleu_sentences, as in training
    assert found["bleu_signature"].startswith("nrefs:1|")
    curve = workdir / "averages" / "last=2.png"
    assert curve.exists() == (find_spec("matplotlib") is not None)

    command = done.stderr.decode().splitlines()[-1].partition("To write it: python ")[2]
    module, *flags = shlex.split(command)[1:]
    assert module == "t2t_jax.main"
    done = tiny.succeed(*flags)
    model = load(next(flag for flag in flags if flag.startswith("--to="))[5:])
    assert list(model.averaged_steps) == found["best"]
    text = workdir.joinpath("config.json").resolve().parents[1]
    sides = [(text / name).read_text().splitlines()[:5] for name in ("en", "de")]
    scores = corpus_scores(model.translate(sides[0]), sides[1])
    assert scores["bleu"] == best["average_bleu"]


def test_given_files_are_scored_and_the_best_kept(newspaper, workdir, tmp_path, capsys):
    to, text = tmp_path / "best", newspaper.parent
    files = [f"--source={text / 'en'}", f"--reference={text / 'de'}"]
    narrow = "--config.decoding.beam_size=1"
    run(workdir, "--sliding", "--last=3", *files, f"--to={to}", narrow)
    found = json.loads((workdir / "averages" / "last=3.json").read_text())
    assert found["sentences"] == 9
    assert found["text"] == f"text:{text / 'en'},{text / 'de'}"
    assert found["decoding"]["beam_size"] == 1
    assert [window["newest"] for window in found["windows"]] == [33, 44, 55]
    model = json.loads((to / "model.json").read_text())
    assert model["averaged_steps"] == found["best"]
    printed = capsys.readouterr()
    assert "To write it" not in printed.err
    assert printed.out.count("\n") == 4


def test_a_window_with_a_gap_is_left_out_or_taken_in_by_force(workdir, capsys):
    (workdir / "checkpoints" / "22").unlink()
    few = "--config.evaluation.bleu_sentences=1"
    for flags, row, told in (
        (["--last=3"], "33,44,55\t", "Skipped 11, 33, 44: the gaps are 22, 11 steps"),
        (["--last=4", "--force"], "22, 11, 11 steps", "--average_steps=11,33,44,55"),
    ):
        run(workdir, "--sliding", *flags, few)
        printed = capsys.readouterr()
        (printed_row,) = printed.out.splitlines()[1:]
        assert row in printed_row
        assert told in printed.err
    assert printed.err.splitlines()[-1].endswith("--force")


@pytest.mark.parametrize(
    ("flags", "kind", "problem"),
    [
        ("--last=2 --to=.", OutputError, "is not empty"),
        ("--last=6", DataError, r"last=6 .* holds 5\."),
        ("--source=en --reference=train.de", DataError, r"en has 9 .*train\.de has 81"),
        ("--source=no.en --reference=no.de", InputMissingError, r"(?s)no\.en.*no\.de"),
        ("--average_steps=22,33", UserError, r"mutually exclusive"),
    ],
)
def test_a_mistake_is_named_before_the_work(
    newspaper, monkeypatch, capsys, flags, kind, problem
):
    monkeypatch.chdir(newspaper.parent)
    before = sorted(newspaper.parent.iterdir())
    with pytest.raises(kind, match=problem):
        run(newspaper, "--sliding", *flags.split())
    assert capsys.readouterr().out == ""
    assert sorted(newspaper.parent.iterdir()) == before
