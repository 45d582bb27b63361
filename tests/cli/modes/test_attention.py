"""What `--mode=attention` refuses before it loads a model."""

import sys

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import attention
from t2t_jax.config import Config
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir


@pytest.fixture
def workdir(tmp_path):
    return make_workdir(tmp_path / "run")


def make_workdir(path, **changed):
    workdir = Workdir(path)
    workdir.create()
    workdir.write_config(Config(**changed))
    return workdir


def run(workdir, *argv, text="A dog."):
    to = f"--to={workdir.path / 'to'}"
    argv = [f"--workdir={workdir.path}", to, f"--text={text}", *argv]
    return attention.run(parse_argv(["--mode=attention", *argv]))


@pytest.mark.parametrize("given", ["8", "0,9", "-1", "first", "", "0,", "0-2", "²"])
def test_all_mistakes_come_at_once_and_nothing_is_written(workdir, given):
    with pytest.raises(UserError) as caught:
        run(workdir, "--target=a\nb\nc", f"--layer={given}", "--head=8", text="a\nb")
    text, target, layer, head = caught.value.problems
    assert "--text must be one line, and has 2" in text
    assert "--target must be one line, and has 3" in target
    assert f"--layer={given} must be all, or some of 0,1,2,3,4,5:" in layer
    assert "--head=8 must be all, or some of 0,1,2,3,4,5,6,7:" in head
    assert not (workdir.path / "to").exists()


@pytest.mark.usefixtures("own_signals")
def test_what_cannot_be_plotted_is_refused(tmp_path, workdir, monkeypatch, capsys):
    rnn = make_workdir(tmp_path / "rnn", architecture="rnn")
    with pytest.raises(UserError, match="has architecture='rnn'"):
        run(rnn)
    argv = [f"--workdir={tmp_path}", "--to=maps", "--text=A dog."]
    assert main(["attention", *argv]) == InputMissingError.exit_code
    assert "not a run or a model" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match="pip install"):
        run(workdir)
