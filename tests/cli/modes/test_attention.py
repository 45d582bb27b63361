"""What `--mode=attention` refuses before it loads a model."""

import dataclasses
import sys

import numpy as np
import pytest

from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.cli.modes import attention
from t2t_jax.config import default, parse
from t2t_jax.errors import InputMissingError, OutputError, UserError
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.workdir import Workdir


@pytest.fixture
def workdir(tmp_path):
    return make_workdir(tmp_path / "run")


def make_workdir(path, **changed):
    config = default()
    config.update(changed)
    workdir = Workdir(path)
    workdir.create()
    workdir.write_config(parse(config.to_dict()))
    return workdir


def run(workdir, *argv, text="A dog."):
    to = f"--to={workdir.path / 'to'}"
    argv = [f"--workdir={workdir.path}", to, f"--text={text}", *argv]
    return attention.run(parse_argv(["--mode=attention", *argv]))


@pytest.mark.parametrize(
    ("flag", "known"), [("layer", "0,1,2,3,4,5"), ("head", "0,1,2,3,4,5,6,7")]
)
@pytest.mark.parametrize("given", ["8", "0,9", "-1", "first", "", "0,", "0-2", "²"])
def test_an_unknown_number_lists_those_that_there_are(workdir, flag, known, given):
    with pytest.raises(UserError, match=f"--{flag}=.* must be all, or some of {known}"):
        run(workdir, f"--{flag}={given}")


def test_all_mistakes_come_at_once_and_nothing_is_written(workdir):
    with pytest.raises(UserError) as caught:
        run(workdir, "--target=a\nb\nc", "--layer=7", "--head=8", text="a\nb")
    text, target, layer, head = caught.value.problems
    assert "--text must be one line, and has 2" in text
    assert "--target must be one line, and has 3" in target
    assert "--layer=7" in layer
    assert "--head=8" in head
    assert not (workdir.path / "to").exists()


def test_numbers_are_read_in_order_and_once(workdir):
    argv = [f"--workdir={workdir.path}", "--to=x", "--text=a", "--mode=attention"]
    options = parse_argv([*argv, "--layer=5, 0,5", "--head=all"])
    layers, heads = attention._select(options)
    assert (layers, heads) == ([0, 5], [0, 1, 2, 3, 4, 5, 6, 7])


def test_a_layer_of_the_deeper_stack_is_plotted_for_that_stack_alone(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra plots")
    workdir = make_workdir(tmp_path / "run")
    config = dataclasses.replace(
        workdir.read_config(), model=TransformerConfig(num_decoder_layers=7)
    )
    workdir.write_config(config)
    argv = [f"--workdir={workdir.path}", "--to=x", "--text=a", "--mode=attention"]
    options = parse_argv([*argv, "--layer=5,6", "--head=0"])
    selection = attention._select(options)
    assert selection.layers == [5, 6]
    maps = {
        kind: np.ones((layers, 8, 2, 2))
        for kind, layers in (("encoder", 6), ("decoder", 7), ("cross", 7))
    }
    pieces = {"source": ["a", "b"], "target": ["c", "d"]}
    plots = attention._plots(maps, pieces, selection=selection)
    assert [name for name, _ in plots if "heat" in name] == [
        "encoder_layer_5_head_0_heat",
        *("decoder_layer_5_head_0_heat", "decoder_layer_6_head_0_heat"),
        *("cross_layer_5_head_0_heat", "cross_layer_6_head_0_heat"),
    ]


def test_a_model_of_another_architecture_is_refused(tmp_path):
    workdir = make_workdir(tmp_path / "rnn", architecture="rnn")
    with pytest.raises(UserError, match="has architecture='rnn'"):
        run(workdir)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputMissingError, match="not a run or a model"):
        run(Workdir(tmp_path))


def test_a_missing_matplotlib_is_found_out_first(workdir, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match="pip install"):
        run(workdir)


def test_a_directory_that_cannot_be_made_is_found_out_first(workdir):
    pytest.importorskip("matplotlib", reason="needs the extra plots")
    (workdir.path / "to").write_text("")
    with pytest.raises(OutputError, match="Cannot create --to="):
        run(workdir)
