"""`--mode=average`, as a user runs it: one mean, and the mean that slides."""

import json
import shlex
from itertools import product

import pytest

from t2t_jax import load
from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.cli.modes import average
from t2t_jax.errors import DataError, InputMissingError, OutputError, UserError
from t2t_jax.evaluation.bleu import corpus_scores
from t2t_jax.evaluation.plots import figure
from tests.integration import tiny

WHO = (("A man", "Ein Mann"), ("A woman", "Eine Frau"), ("A child", "Ein Kind"))
WHEN = (("today", "heute"), ("at night", "nachts"), ("often", "oft"))
HEADER = ["steps", "first", "newest", "average_bleu", "newest_bleu", "gaps"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Holds sentences so alike that a few steps lead to some that score."""
    folder = tmp_path_factory.mktemp("text")
    pairs = list(product(WHO, WHEN))
    for name, n, does in (("en", 0, "is reading a book"), ("de", 1, "liest ein Buch")):
        lines = [f"{who[n]} {does} {when[n]}.\n" for who, when in pairs]
        (folder / f"train.{name}").write_text("".join(lines * 9), encoding="utf-8")
        (folder / f"dev.{name}").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def workdir(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("average") / "über uns"  # a space and an umlaut
    changed = {
        "data__train": f"text:{text / 'train.en'},{text / 'train.de'}",
        "data__dev": f"text:{text / 'dev.en'},{text / 'dev.de'}",
        "vocabulary__size": 70,
        "optimizer__warmup_steps": 20,
        "optimizer__peak_learning_rate": 0.02,
        "steps": 57,
        "evaluation__every_steps": 100_000,  # the last step alone
        "evaluation__bleu_sentences": 5,
        "checkpoint__every_steps": 11,
        "checkpoint__every_minutes": 0,
        "checkpoint__keep": 5,
    }
    done = tiny.run(*tiny.arguments(path, **changed))
    assert done.returncode == 0, done.stderr.decode()
    return path


def run(workdir, *flags):
    """Runs the mode in this process."""
    options = parse_argv(["--mode=average", f"--workdir={workdir}", *flags])
    return average.run(options)


def test_an_average_is_a_model_that_translates(workdir, tmp_path):
    to = tmp_path / "average"
    flags = ("--mode=average", f"--workdir={workdir}", f"--to={to}", "--last=2")
    done = tiny.run(*flags, fresh=True)
    assert done.returncode == 0, done.stderr.decode()
    assert b"checkpoints 44, 55 into" in done.stderr
    used = tiny.run("--mode=translate", f"--workdir={to}", stdin=b"A man.\n\n")
    assert used.returncode == 0, used.stderr.decode()
    assert used.stdout.count(b"\n") == 2
    trained = tiny.run(f"--workdir={to}", "--config.steps=70")
    assert trained.returncode == 64
    assert b"is a model" in trained.stderr
    refused = tiny.run(*flags)
    assert refused.returncode == 73
    assert b"new or empty" in refused.stderr


def test_what_is_uneven_ends_without_a_traceback(workdir, tmp_path):
    flags = (f"--workdir={workdir}", f"--to={tmp_path / 'a'}")
    done = tiny.run("--mode=average", *flags, "--average_steps=22,33,55,57")
    assert done.returncode == 65
    assert b"22, 33, 55, 57: the gaps are 11, 22, 2 steps" in done.stderr
    assert b"57 is not periodic" in done.stderr
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "a").exists()


@pytest.fixture(scope="module")
def slid(workdir):
    """Slides once over the development set, and returns what was printed."""
    done = tiny.run("--mode=average", f"--workdir={workdir}", "--sliding", "--last=2")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_a_sliding_average_prints_a_row_for_each_window(slid):
    header, *rows = (line.split("\t") for line in slid[0].splitlines())
    assert header == HEADER
    assert [row[0] for row in rows] == ["11,22", "22,33", "33,44", "44,55"]
    assert rows[0][1:3] == ["11", "22"]
    assert {row[5] for row in rows} == {"11 steps"}


def test_the_json_holds_the_same_table_unrounded(slid, workdir):
    found = json.loads((workdir / "averages" / "last=2.json").read_text())
    rows = [line.split("\t") for line in slid[0].splitlines()[1:]]
    for row, window in zip(rows, found["windows"], strict=True):
        assert row[0] == ",".join(map(str, window["steps"]))
        assert row[3] == f"{window['average_bleu']:.2f}"
        assert row[4] == f"{window['newest_bleu']:.2f}"
        assert (window["first"], window["newest"]) == tuple(window["steps"])
        assert window["forced"] is False
        assert (window["unit"], window["gaps"]) == ("steps", [11])
    best = max(found["windows"], key=lambda window: window["average_bleu"])
    assert 0 < best["average_bleu"]
    assert found["best"] == best["steps"]
    assert found["last"] == 2
    assert found["sentences"] == 5  # evaluation.bleu_sentences, as in training
    assert found["bleu_signature"].startswith("nrefs:1|")


def test_the_curve_is_drawn_beside_it(slid, workdir):
    pytest.importorskip("matplotlib")
    assert (workdir / "averages" / "last=2.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_at_the_end_writes_the_model_that_scored_best(slid, workdir, text):
    found = json.loads((workdir / "averages" / "last=2.json").read_text())
    command = slid[1].splitlines()[-1].partition("To write it: python ")[2]
    module, *flags = shlex.split(command)[1:]
    assert module == "t2t_jax.main"
    done = tiny.run(*flags)
    assert done.returncode == 0, done.stderr.decode()
    model = load(next(flag for flag in flags if flag.startswith("--to="))[5:])
    assert list(model.averaged_steps) == found["best"]
    sources, references = (
        (text / name).read_text().splitlines()[:5] for name in ("dev.en", "dev.de")
    )
    scores = corpus_scores(model.translate(sources), references)
    best = max(window["average_bleu"] for window in found["windows"])
    assert scores["bleu"] == best


def test_a_place_that_will_not_do_is_refused_before_the_work(workdir, capsys):
    with pytest.raises(OutputError, match="exists and is not empty"):
        run(workdir, "--sliding", "--last=2", f"--to={workdir}")
    assert capsys.readouterr().out == ""


def test_given_files_are_scored_and_the_best_is_written(
    workdir, text, tmp_path, capsys
):
    to = tmp_path / "best"
    files = [f"--source={text / 'dev.en'}", f"--reference={text / 'dev.de'}"]
    narrow = "--config.decoding.beam_size=1"
    assert run(workdir, "--sliding", "--last=3", *files, f"--to={to}", narrow) == 0
    found = json.loads((workdir / "averages" / "last=3.json").read_text())
    assert found["sentences"] == 9
    assert found["text"] == f"text:{text / 'dev.en'},{text / 'dev.de'}"
    assert found["decoding"]["beam_size"] == 1
    assert [window["newest"] for window in found["windows"]] == [33, 44, 55]
    model = json.loads((to / "model.json").read_text())
    assert model["averaged_steps"] == found["best"]
    printed = capsys.readouterr()
    assert "To write it" not in printed.err
    assert printed.out.count("\n") == 4


def test_too_few_checkpoints_for_a_window_is_an_error(workdir, capsys):
    with pytest.raises(DataError, match=r"last=6 .* holds 5\."):
        run(workdir, "--sliding", "--last=6")
    assert capsys.readouterr().out == ""


def test_as_many_checkpoints_as_a_window_holds_make_one_row_without_a_curve_too(
    workdir, monkeypatch, capsys
):
    monkeypatch.setattr(figure, "find_spec", lambda name: None)
    assert run(workdir, "--sliding") == 0  # checkpoint.keep, as without --sliding
    printed = capsys.readouterr()
    (_, row) = printed.out.splitlines()
    assert row.startswith("11,22,33,44,55\t11\t55\t")
    assert "5 checkpoints form one window" in printed.err
    lines = [line for line in printed.err.splitlines() if "matplotlib" in line]
    assert ["pip install 't2t-jax[plots]'" in line for line in lines] == [True]
    assert not (workdir / "averages" / "last=5.png").exists()


@pytest.fixture
def with_a_gap(workdir, tmp_path):
    """Leaves the second of the five periodic checkpoints out."""
    path = tmp_path / "gap"
    (path / "checkpoints").mkdir(parents=True)
    for file in workdir.iterdir():
        if file.is_file():
            (path / file.name).symlink_to(file)
    for step in (11, 33, 44, 55, 57):
        (path / f"checkpoints/{step}").symlink_to(workdir / f"checkpoints/{step}")
    return path


def test_a_window_with_a_gap_is_left_out(with_a_gap, capsys):
    assert run(with_a_gap, "--sliding", "--last=3") == 0
    printed = capsys.readouterr()
    assert [line.split("\t")[0] for line in printed.out.splitlines()[1:]] == [
        "33,44,55"
    ]
    assert "Skipped 11, 33, 44: the gaps are 22, 11 steps" in printed.err


def test_force_takes_it_in(with_a_gap, capsys):
    assert run(with_a_gap, "--sliding", "--last=4", "--force") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].endswith("\t22, 11, 11 steps")
    assert "--average_steps=11,33,44,55" in printed.err
    assert printed.err.splitlines()[-1].endswith("--force")
    found = json.loads((with_a_gap / "averages" / "last=4.json").read_text())
    assert found["windows"][0]["forced"] is True


def test_a_sliding_average_of_gaps_alone_is_refused(with_a_gap):
    with pytest.raises(DataError, match=r"11, 33, 44, 55: the gaps are 22, 11, 11"):
        run(with_a_gap, "--sliding", "--last=4")


def test_sides_that_differ_in_length_are_both_named(workdir, text):
    files = [f"--source={text / 'dev.en'}", f"--reference={text / 'train.de'}"]
    with pytest.raises(DataError, match=r"dev\.en has 9 lines and .*train\.de has 81"):
        run(workdir, "--sliding", "--last=2", *files)


def test_files_that_are_not_there_are_both_named(workdir):
    with pytest.raises(InputMissingError) as caught:
        run(workdir, "--sliding", "--source=no.en", "--reference=no.de")
    assert "no.en" in caught.value.problems[0]
    assert "no.de" in caught.value.problems[1]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--sliding", "--source=a"], r"--source requires the other of"),
        (["--sliding", "--reference=a"], r"--reference requires the other of"),
        (["--sliding", "--average_steps=22,33"], r"mutually exclusive"),
        (["--to=x", "--source=a"], r"--source requires --sliding"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(workdir, flags, problem):
    with pytest.raises(UserError, match=problem):
        run(workdir, *flags)
