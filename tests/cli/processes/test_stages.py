import dataclasses
import io
from types import SimpleNamespace

import pytest

from t2t_jax.cli.flags import parser
from t2t_jax.cli.processes import stages
from t2t_jax.cli.processes.stages import (
    RemoteFailure,
    check_same_input,
    check_same_settings,
    refuse_stdin,
    run_stage,
    shared_settings,
)
from t2t_jax.config import Config
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import ConfigError, DataError, InputMissingError, UserError
from t2t_jax.run.workdir import Workdir
from tests.cli.threads import on_all


def test_what_goes_well_everywhere_goes_on():
    assert on_all(lambda ps: run_stage(ps, "first", lambda: 7 * ps.index)) == [0, 7, 14]


def test_what_fails_on_one_ends_all_with_its_code(capsys):
    def act(processes):
        if processes.index == 1:
            raise InputMissingError("there is no file here")

    found = on_all(lambda ps: run_stage(ps, "first", lambda: act(ps)))
    assert [type(error) for error in found] == [RemoteFailure] * 3
    assert [error.code for error in found] == [66] * 3
    assert capsys.readouterr().err == "error: there is no file here\n"


def test_one_process_alone_lets_its_error_pass():
    def fail():
        raise InputMissingError("there is no file here")

    with pytest.raises(InputMissingError, match="there is no file here"):
        run_stage(SINGLE_PROCESS, "first", fail)


def test_the_same_lines_everywhere_are_well():
    assert (
        on_all(lambda ps: check_same_input(ps, "--input=a", ["ü", "\ud800"]))
        == [None] * 3
    )
    assert check_same_input(SINGLE_PROCESS, "--input=a", ["b"]) is None


@pytest.mark.parametrize("other", [["a", "c"], ["b", "a"], ["a"], ["ab", ""]])
def test_a_process_with_other_lines_says_so(other):
    lines = [["a", "b"], other, ["a", "b"]]
    # The file may have another name there, too.
    first, second, third = on_all(
        lambda ps: check_same_input(ps, f"--input={ps.index}.en", lines[ps.index])
    )
    assert (first, third) == (None, None)
    assert isinstance(second, DataError)
    assert "--input=1.en must have the same lines on every process" in str(second)
    assert f"they differ: {len(other)} lines here, 2 on process 0" in str(second)


@pytest.fixture
def settings(tmp_path):
    """Reads the settings of a command line that translates with a run."""
    run = Workdir(tmp_path / "run")
    run.create()
    run.write_config(Config())
    run.write_json("fingerprints.json", {"vocabulary": "ab"})

    def read(*argv, mode="translate"):
        given = [f"--mode={mode}", f"--workdir={run.path}", *argv]
        return shared_settings(parser.parse_argv(given))

    read.run = run
    return read


def compared(ours, theirs):
    """Lets process 0 begin with `ours`, and another with `theirs`."""
    given = [ours, theirs]
    return on_all(lambda ps: check_same_settings(ps, given[ps.index]), count=2)


def test_processes_that_were_started_alike_go_on(settings):
    other_place = ("--input=b.en", "--config.data.cache_dir=c", "--config.mesh.fsdp=2")
    assert compared(settings("--input=a.en"), settings(*other_place)) == [None, None]
    assert check_same_settings(SINGLE_PROCESS, settings()) is None


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


@pytest.mark.parametrize("name", ["fingerprints.json", "model.json", "vocab.json"])
def test_another_workdir_is_another_start(settings, name):
    ours = settings()
    settings.run.write_json(name, {"vocabulary": "cd"})
    _, told = compared(ours, settings())
    assert "the content of --workdir is " in str(told)


def test_another_experiment_in_the_workdir_is_another_start(settings):
    ours = settings()
    settings.run.write_config(dataclasses.replace(Config(), seed=3))
    _, told = compared(ours, settings())
    assert "config.seed is 3 and not 0" in str(told)


def test_a_run_that_goes_on_meanwhile_is_the_same(settings):
    ours = settings()
    settings.run.write_config(dataclasses.replace(Config(), steps=7))
    assert compared(ours, settings()) == [None, None]


def test_several_processes_do_not_share_a_standard_input():
    refuse_stdin(SINGLE_PROCESS, "input", "-")
    refuse_stdin(Processes(count=2), "input", "a.en")
    with pytest.raises(UserError, match="--input=- is standard input, which 2"):
        refuse_stdin(Processes(count=2), "input", "-")


class Shouter:
    """A model and its translator, which says who came before."""

    def translator(self):
        return self

    def iter_translations(self, lines, *, first):
        if "broken" in lines:
            raise DataError("the weights are damaged")
        for number, line in reversed(list(enumerate(lines))):
            yield number, SimpleNamespace(text=f"{first + number} {line.upper()}")


def test_a_share_that_fails_is_gathered_by_nobody(monkeypatch, capsys):
    from t2t_jax.distributed import gather

    gathered = []
    monkeypatch.setattr(gather, "allgather_strings", lambda *a: gathered.append(a))
    lines = ["a", "b", "broken"]
    found = on_all(lambda ps: stages.translate_shared(ps, Shouter(), lines), count=2)
    assert [error.code for error in found] == [65, 65]
    assert gathered == []
    assert capsys.readouterr().err == "error: the weights are damaged\n"


def test_one_process_translates_all():
    seen = []
    found = stages.translate_shared(
        SINGLE_PROCESS, Shouter(), ["a", "b"], seen=seen.append
    )
    assert found == ["0 A", "1 B"]
    assert seen == [1, 1]


def test_stdout_is_left_as_it_is_for_one_process(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    stages.redirect_native_stdout(SINGLE_PROCESS)
    print("a")
    assert out.getvalue() == "a\n"
