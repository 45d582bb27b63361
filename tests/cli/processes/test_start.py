import dataclasses

import pytest

from t2t_jax.cli.flags import parser
from t2t_jax.cli.processes import start
from t2t_jax.cli.processes.start import settings_of, start_processes
from t2t_jax.config import Config
from t2t_jax.errors import ConfigError
from t2t_jax.run.workdir import Workdir
from tests.cli.threads import on_all


@pytest.fixture(autouse=True)
def _same_stdout(monkeypatch):
    monkeypatch.setattr(start, "_redirect_native_stdout", lambda: None)


@pytest.fixture
def settings(tmp_path):
    """Parses a command line that translates with a run."""

    def read(*argv, mode="translate", workdir=None):
        workdir = workdir or make_run(tmp_path / "run")
        return parser.parse_argv([f"--mode={mode}", f"--workdir={workdir}", *argv])

    return read


def make_run(path, *, config=None, **files):
    run = Workdir(path)
    run.create()
    run.write_config(config or Config())
    run.write_json("fingerprints.json", {"vocabulary": "ab"})
    for name, content in files.items():
        run.write_json(f"{name}.json", content)
    return path


def compared(ours, theirs):
    """Starts process 0 with the options `ours`, and another with `theirs`."""
    given = [ours, theirs]

    def start_one(processes):
        options = dataclasses.replace(given[processes.index], processes=processes)
        return start_processes(options)

    return on_all(start_one, count=2)


def test_processes_that_were_started_alike_go_on(settings):
    other_place = ("--input=b.en", "--config.data.cache_dir=c", "--config.mesh.fsdp=2")
    assert compared(settings("--input=a.en"), settings(*other_place)) == [None, None]
    assert start_processes(settings()) is None


def test_a_process_that_was_started_otherwise_names_all_that_differs(settings):
    other = settings("--checkpoint=5", "--config.decoding.beam_size=7")
    first, second = compared(settings(), other)
    assert first is None
    assert isinstance(second, ConfigError)
    (problem,) = second.problems
    assert problem.startswith("Process 1 has other settings than process 0: ")
    assert '--checkpoint is "5" and not "best"' in problem
    assert "config.decoding.beam_size is 7 and not 4" in problem
    assert problem.count(" and not ") == 2


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--protocol=vaswani2017"], "--protocol"),
        (["--protocol=vaswani2017", "--last=3"], "--last"),
        (["--protocol=vaswani2017", "--force"], "--force"),
    ],
)
def test_what_chooses_checkpoints_must_be_alike(settings, argv, named):
    pair = ("--source=a", "--reference=b")
    _, told = compared(
        settings(*pair, mode="evaluate"), settings(*pair, *argv, mode="evaluate")
    )
    assert f"{named} is " in str(told)


def test_another_mode_is_another_start(settings):
    pair = ("--source=a", "--reference=b")
    _, told = compared(settings(), settings(*pair, mode="evaluate"))
    assert '--mode is "evaluate" and not "translate"' in str(told)


@pytest.mark.parametrize("name", ["fingerprints", "model", "vocab"])
def test_another_workdir_is_another_start(settings, tmp_path, name):
    other = make_run(tmp_path / "other", **{name: {"vocabulary": "cd"}})
    _, error = compared(settings(), settings(workdir=other))
    assert "the content of --workdir is " in str(error)


def test_another_experiment_in_the_workdir_is_another_start(settings, tmp_path):
    other = make_run(tmp_path / "other", config=dataclasses.replace(Config(), seed=3))
    _, error = compared(settings(), settings(workdir=other))
    assert "config.seed is 3 and not 0" in str(error)


def test_a_run_that_resumes_meanwhile_is_the_same(settings, tmp_path):
    other = make_run(tmp_path / "other", config=dataclasses.replace(Config(), steps=7))
    assert compared(settings(), settings(workdir=other)) == [None, None]


def test_the_same_workdir_has_one_digest(settings, tmp_path):
    digests = [settings_of(settings())["the content of --workdir"] for _ in range(2)]
    assert digests[0] == digests[1]
