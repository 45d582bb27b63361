"""`--mode=import`: what it writes, prints and refuses.

Seen to fail: without `require_own` the answer to another toolkit's model is that a file
of ours is missing or damaged.
"""

import json

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import import_
from t2t_jax.errors import InputMissingError
from tests.exchange import marian_save


@pytest.fixture
def marian(tmp_path):
    folder = tmp_path / "marian"
    folder.mkdir()
    marian_save.save(folder / "model.npz")
    (folder / "my.spm").write_bytes(marian_save.sentencepiece_model())
    return folder


def test_a_model_is_imported_and_the_next_command_printed(marian, tmp_path, capsys):
    to = tmp_path / "mine"
    argv = ["--mode=import", f"--from={marian}/model.npz", f"--to={to}"]
    assert import_.run(parse_argv([*argv, f"--vocabularies={marian}/my.spm"])) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"--mode=translate --workdir={to}" in printed.err
    assert json.loads((to / "config.json").read_text())["model"]["start"] == "zero"


@pytest.mark.parametrize("mode", ["translate", "describe", "train", "export"])
def test_another_toolkits_model_is_answered_with_the_import(marian, mode):
    if mode == "translate":
        (marian / "config.json").write_text('{"model_type": "marian"}')
    argv = [f"--mode={mode}", f"--workdir={marian}"]
    if mode == "export":
        argv += ["--format=model_dir", "--to=x"]
    with pytest.raises(InputMissingError, match=r"--mode=import --from="):
        parse_argv(argv)
