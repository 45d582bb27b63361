"""What `--mode=evaluate` refuses, before JAX is imported and anything is decoded."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from t2t_jax.cli.evaluation import translated
from t2t_jax.cli.evaluation.corpus import Corpus
from t2t_jax.cli.modes import score
from t2t_jax.cli.translation.job import TranslationJob
from t2t_jax.config import Config, parse
from t2t_jax.distributed.processes import SINGLE_PROCESS
from t2t_jax.inference import load as loading
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir
from tests.integration import tiny

NUM_PAIRS = 23


@pytest.fixture
def workdir(tmp_path):
    """Holds a run's configuration, which is as much of it as is looked at."""
    run = Workdir(tmp_path / "run")
    run.create()
    run.write_config(Config())
    return run.path


@pytest.fixture
def texts(tmp_path):
    for name in ("en", "de"):
        _write(tmp_path / name, ["a"] * NUM_PAIRS)
    return tmp_path


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _arguments(workdir, texts, *argv):
    return (
        "--mode=evaluate",
        f"--workdir={workdir}",
        f"--source={texts / 'en'}",
        f"--reference={texts / 'de'}",
        *argv,
    )


def _refused(*argv, without=()):
    """Returns exit code and stderr of a command that must fail before JAX is there."""
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({list(without)!r}))\n"
        "from t2t_jax.main import main\n"
        f"code = main({list(argv)!r})\n"
        "print(code, 'jax' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tiny.ROOT,
        env=tiny.environment(),
        check=True,
    )
    code, jax_is_there = done.stdout.split()
    assert jax_is_there == "False"
    return int(code), done.stderr


@pytest.mark.parametrize("protocol", ["", "vaswani2017"])
def test_files_of_other_lengths_are_all_named_before_jax(
    workdir, texts, tmp_path, protocol
):
    _write(tmp_path / "long.en", ["a"] * 1201)
    _write(tmp_path / "short", ["a"] * 7)
    code, errors = _refused(
        *_arguments(workdir, texts),
        f"--source={tmp_path / 'long.en'}",
        f"--baseline={tmp_path / 'short'}",
        *([f"--protocol={protocol}"] if protocol else []),
    )
    assert code == 65
    reference = f"{texts / 'de'} has {NUM_PAIRS}."
    assert f"{tmp_path / 'long.en'} has 1,201, {reference}" in errors
    assert f"{tmp_path / 'short'} has 7, {reference}" in errors
    assert errors.count("error:") == 2


def test_an_empty_file_is_said_to_be_empty(workdir, texts, tmp_path):
    (tmp_path / "empty").touch()
    code, errors = _refused(
        *_arguments(workdir, texts), f"--reference={tmp_path / 'empty'}"
    )
    assert code == 65
    assert f"--reference={tmp_path / 'empty'} must have lines, and is empty" in errors


def test_a_missing_sacremoses_is_said_at_once(workdir, texts):
    code, errors = _refused(
        *_arguments(workdir, texts, "--protocol=vaswani2017"), without=["sacremoses"]
    )
    assert code == 64
    assert "pip install 't2t-jax[paper]'" in errors


@pytest.mark.parametrize(
    ("given", "train", "reference"),
    [
        ("german", "phrasebook:train:300", "de"),
        ("", "text:a.en,a.de", "test.fr"),
        ("", "text:a.src,a.tgt", "reference.txt"),
    ],
)
def test_a_language_that_is_not_known_is_asked_for_at_once(
    workdir, texts, given, train, reference
):
    pytest.importorskip("sacremoses", reason="the extra `paper` is not installed")
    Workdir(workdir).write_config(parse({"data": {"train": train}}))
    _write(texts / reference, ["a"] * NUM_PAIRS)
    argv = [f"--target_language={given}"] if given else []
    argv += ["--protocol=tokenized", f"--reference={texts / reference}"]
    code, errors = _refused(*_arguments(workdir, texts, *argv))
    assert code == 64
    assert "--target_language=" in errors
    assert errors.count("error:") == 1


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [("-", 64, "must be a file"), ("no/where", 73, "--hypotheses=no/where must be")],
)
def test_a_file_that_cannot_be_written_is_said_before_the_work(
    workdir, texts, name, code, told
):
    found, errors = _refused(*_arguments(workdir, texts, f"--hypotheses={name}"))
    assert found == code
    assert told in errors


class _Slow:
    """A model and its translator and scorer, on a clock that goes on at each line."""

    known_words = None

    def __init__(self, clock):
        self._clock = clock

    def translator(self):
        return self

    scorer = translator

    def iter_scores(self, sources, targets):
        return self.iter_translations(sources)

    def iter_translations(self, lines, *rest, first=0, **beside):
        for number, line in enumerate(lines):
            self._clock[0] += 6.0
            yield (
                number,
                SimpleNamespace(
                    text=line.upper(),
                    statuses=("unfamiliar",) if line == "b" else ("ok",),
                    source_cut=False,
                ),
            )


@pytest.fixture
def slow(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return _Slow(clock)


def test_a_long_evaluation_shows_how_far_it_is(slow, capsys, monkeypatch):
    corpus = Corpus(["a", "b", "c"], ["A", "B", "C"], None)
    options = SimpleNamespace(processes=SINGLE_PROCESS, hypotheses="")
    job = TranslationJob(slow, slow, lambda number, line, translation: translation.text)
    monkeypatch.setattr(translated, "load_job", lambda options: job)
    found = translated.translate_corpus(options, corpus)
    assert found.hypotheses == ["A", "B", "C"]
    said = capsys.readouterr()
    assert said.out == ""
    progress, warning, summary = said.err.splitlines()
    assert "line 2 is unfamiliar" in warning
    assert progress == "translated 2/3 lines (67 %)  0.2 lines/s  ETA 0:00:06"
    assert summary == "Translated 3 lines in 18.0 s, 0.2 lines/s: 1 unfamiliar."
    assert found.statuses == {"unfamiliar": 1}


def test_long_scoring_shows_how_far_it_is(slow, capsys, monkeypatch, workdir, texts):
    monkeypatch.setattr(loading, "load", lambda *args, **kwargs: slow)
    monkeypatch.setitem(score._FORMATS, "tsv", lambda scores: iter(()))
    monkeypatch.setattr(score, "_summary", lambda scores: f"{len(scores)} scored")
    argv = _arguments(workdir, texts, "--mode=score", f"--output={texts / 'out'}")
    assert main(argv) == 0
    copies, first, *_, last = capsys.readouterr().err.splitlines()
    assert copies.startswith("warning: 23 of the 23 lines")
    assert first == "scored 2/23 pairs (9 %)  0.2 pairs/s  ETA 0:02:06"
    assert last == "23 scored"
