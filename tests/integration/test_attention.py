"""`--mode=attention` and `--mode=figures`, as a user runs them."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("matplotlib", reason="needs the extra plots")

from tests.faults.running import refused
from tests.integration import tiny

TEXT = "The old teacher reads a book."


def size_of(content):
    """Reads width and height off a PNG's header, in dots."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", content[16:24])


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """A run of two layers, with checkpoints of steps 5 and 6."""
    path = tmp_path_factory.mktemp("attention") / "model"
    how = {"model__num_layers": 2, "steps": 6, "evaluation__every_steps": 0}
    tiny.succeed(*tiny.arguments(path, **how))
    return path


def flags(workdir, to, *argv):
    return ("--mode=attention", f"--workdir={workdir}", f"--to={to}", *argv)


@pytest.fixture(scope="module")
def drawn(workdir, tmp_path_factory):
    to = tmp_path_factory.mktemp("drawn") / "pictures"
    return tiny.succeed(*flags(workdir, to, f"--text={TEXT}"), fresh=True), to


def test_plots_arrays_and_tokens_are_written_and_named_on_stdout(drawn, workdir):
    done, to = drawn
    named = [Path(line) for line in done.stdout.decode().splitlines()]
    assert sorted(named) == sorted(to.iterdir())
    pictures = {
        f"{kind}_layer_{layer}_{way}.png"
        for kind in ("encoder", "decoder", "cross")
        for layer in (0, 1)
        for way in ("heat", "lines")
    }
    assert {path.name for path in named} == {*pictures, "attention.npz", "tokens.json"}
    assert b"12 plots" in done.stderr
    for name in pictures:
        assert min(size_of((to / name).read_bytes())) > 150

    tokens = json.loads((to / "tokens.json").read_text(encoding="utf-8"))
    source, target = tokens["source"], tokens["target"]
    assert "".join(source) == "▁" + TEXT.replace(" ", "▁") + "</s>"
    assert target[0] == "<s>"
    said = "".join(target[1:]).replace("▁", " ").strip()
    assert said == tokens["translation"]
    assert [said] == tiny.load(workdir).translate([TEXT])
    del tokens["source"], tokens["target"], tokens["translation"]
    assert tokens == {
        **{"text": TEXT, "translated_by": "model", "checkpoint_step": 6},
        **{"layers": [0, 1], "heads": [0, 1]},
    }
    num_source, num_target = len(source), len(target)
    with np.load(to / "attention.npz") as file:
        maps = dict(file)
    assert {kind: weights.shape for kind, weights in maps.items()} == {
        "encoder": (2, 2, num_source, num_source),
        "decoder": (2, 2, num_target, num_target),
        "cross": (2, 2, num_target, num_source),
    }
    for weights in maps.values():
        assert_allclose(weights.sum(-1), np.ones(weights.shape[:-1]), rtol=1e-5)
    later = np.triu(np.ones((num_target, num_target), bool), 1)
    assert_array_equal(maps["decoder"][..., later], 0.0)


def test_a_given_target_one_layer_and_one_head(workdir, tmp_path):
    chosen = ["--target=Ein Buch.", "--layer=1", "--head=1", "--checkpoint=5"]
    tiny.succeed(*flags(workdir, tmp_path, f"--text={TEXT}", *chosen))
    tokens = json.loads((tmp_path / "tokens.json").read_text(encoding="utf-8"))
    assert "".join(tokens["target"]) == "<s>▁Ein▁Buch."
    assert (tokens["translation"], tokens["translated_by"]) == ("Ein Buch.", "user")
    assert (tokens["layers"], tokens["heads"]) == ([1], [1])
    assert tokens["checkpoint_step"] == 5
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {
        f"{kind}_layer_1_head_1_{way}.png"
        for kind in ("encoder", "decoder", "cross")
        for way in ("heat", "lines")
    }


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--text=a", "--target= "], "--target=' ' has no subwords"),
        (["--text=a", f"--target={'a b ' * 40}"], "at most 69"),
    ],
)
def test_text_that_cannot_be_read_is_an_error(workdir, tmp_path, argv, message):
    done = tiny.run(*flags(workdir, tmp_path, *argv))
    refused(done, 64, message)
    assert done.stdout == b""


def test_the_figures_need_no_run(tmp_path):
    done = tiny.succeed("--mode=figures", f"--to={tmp_path / 'figures'}", fresh=True)
    named = [Path(line) for line in done.stdout.decode().splitlines()]
    assert [path.name for path in named] == ["schedule.png", "positions.png"]
    for path in named:
        assert min(size_of(path.read_bytes())) > 500
