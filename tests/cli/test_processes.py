"""Processes that were started alike, and see the same run and checkpoints."""

import dataclasses
import threading

import pytest

from t2t_jax.cli import processes as start
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.processes import settings_of, start_processes
from t2t_jax.config import Config, parse, to_dict
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS
from t2t_jax.errors import ConfigError, InputMissingError
from t2t_jax.run.inference.load import shared_steps
from t2t_jax.run.start import require_same_run
from t2t_jax.run.workdir import Workdir
from tests.cli.threads import on_all

TEXT = {"train": "ab", "dev": "cd"}


@pytest.fixture(autouse=True)
def _same_stdout(monkeypatch):
    monkeypatch.setattr(start, "_redirect_native_stdout", lambda: None)


@pytest.fixture
def settings(tmp_path):
    """Parses a command line that translates with a run."""

    def read(*argv, name="run", config=None, **files):
        run = Workdir(tmp_path / name)
        run.create()
        run.write_config(config or Config())
        run.write_json("fingerprints.json", {"vocabulary": "ab"})
        for file, content in files.items():
            run.write_json(f"{file}.json", content)
        return parse_argv(["--mode=translate", *argv, f"--workdir={run.path}"])

    return read


def compared(ours, theirs):
    """Starts process 0 with the options `ours`, and another with `theirs`."""

    def start_one(processes):
        options = [ours, theirs][processes.index]
        return start_processes(dataclasses.replace(options, processes=processes))

    return on_all(start_one, count=2)


def test_processes_that_were_started_alike_go_on(settings):
    other_place = ("--input=b.en", "--config.data.cache_dir=c", "--config.mesh.fsdp=2")
    assert compared(settings("--input=a.en"), settings(*other_place)) == [None, None]
    # A run that resumes meanwhile is the same.
    resumed = settings(name="other", config=dataclasses.replace(Config(), steps=7))
    assert compared(settings(), resumed) == [None, None]
    assert start_processes(settings()) is None


@pytest.mark.parametrize("name", ["fingerprints", "model", "vocab"])
def test_another_workdir_or_experiment_is_another_start(settings, name):
    other = settings(name="other", **{name: {"vocabulary": "cd"}})
    _, error = compared(settings(), other)
    assert "the content of --workdir is " in str(error)
    other = settings(name="third", config=dataclasses.replace(Config(), seed=3))
    _, error = compared(settings(), other)
    assert "config.seed is 3 and not 0" in str(error)
    _, error = compared(settings(), settings("--config.data.subword_joiner=@@"))
    assert 'config.data.subword_joiner is "@@" and' in str(error)


def test_another_shortlist_below_the_same_path_is_another_start(settings, tmp_path):
    (path := tmp_path / "s.npz").write_bytes(b"one")
    options = settings(f"--shortlist={path}")
    found = settings_of(options)
    path.write_bytes(b"other")
    different = {k for k, v in settings_of(options).items() if found[k] != v}
    assert different == {"the content of --shortlist"}


def handshake(owner="process 7", **changed):
    config = to_dict(parse({**to_dict(Config()), **changed}))
    return {"config": config, "owner": owner, "fingerprints": TEXT}


def test_another_configuration_is_refused_key_by_key(tmp_path):
    workdir = Workdir(tmp_path / "run")
    with pytest.raises(ConfigError) as raised:
        require_same_run(handshake(steps=17, seed=3), Config(), workdir, index=5)
    assert [problem.partition(".")[0] for problem in raised.value.problems] == [
        "Process 5 was started with steps=100000, and process 0 with 17",
        "Process 5 was started with seed=0, and process 0 with 3",
    ]


def test_a_workdir_that_is_not_shared_is_named_and_the_text_may_lie_elsewhere(tmp_path):
    workdir = Workdir(tmp_path / "run")
    workdir.create()
    here = parse({"data": {"train": "text:/a.en,/a.de", "cache_dir": "/fast"}})
    with workdir.locked() as owner:
        require_same_run(handshake(owner), here, workdir, index=1, seconds=0)
    with pytest.raises(InputMissingError, match=r"run must be on .* process 3 does"):
        require_same_run(handshake(), here, workdir, index=3, seconds=0)


@pytest.fixture
def run(tmp_path):
    """Makes a workdir that shows these checkpoints, which are empty."""

    def make(name, *steps):
        made = Workdir(tmp_path / name)
        for step in steps:
            (made.checkpoints / str(step)).mkdir(parents=True)
        return made

    return make


def test_process_0_chooses_for_all_and_is_the_only_one_to_look(run):
    asked, seen = [], run("run", 5, 7)

    def choose(index):
        asked.append(index)
        return (5, 7)

    found = on_all(lambda ps: shared_steps(ps, seen, lambda: choose(ps.index)))
    assert found == [(5, 7)] * 3
    assert asked == [0]
    assert shared_steps(SINGLE_PROCESS, seen, lambda: [9]) == (9,)


def test_a_process_that_does_not_see_the_checkpoint_names_it(run):
    whole = run("run", 5, 7)
    seen = [whole, run("hidden", 5), whole]
    found = on_all(
        lambda ps: shared_steps(ps, seen[ps.index], lambda: [5, 7], seconds=0)
    )
    assert [found[0], found[2]] == [(5, 7), (5, 7)]
    assert isinstance(found[1], InputMissingError)
    assert str(found[1]).startswith("Process 0 uses step 7, but process 1 does not see")


def test_a_checkpoint_that_appears_late_is_waited_for(run):
    seen = [run("run", 5, 7), run("late", 5)]
    timer = threading.Timer(0.3, (seen[1].checkpoints / "7").mkdir)
    timer.start()
    found = on_all(
        lambda ps: shared_steps(ps, seen[ps.index], lambda: [5, 7], seconds=20), count=2
    )
    assert found == [(5, 7)] * 2
    timer.join()


PAIR = ("--mode=evaluate", "--source=a", "--reference=b")


@pytest.mark.parametrize("argv", [[], ["--last=3"], ["--force"]])
def test_what_chooses_checkpoints_must_be_alike(settings, argv):
    other = settings(*PAIR, "--protocol=vaswani2017", *argv)
    _, error = compared(settings(*PAIR), other)
    for flag in ["--protocol", *argv]:
        assert f"{flag.partition('=')[0]} is " in str(error)
    _, error = compared(settings(), other)
    assert '--mode is "evaluate" and not "translate"' in str(error)
