"""`--mode=recover`: a run gets back what it cannot do without, from a checkpoint.

Seen to fail: without the files in `CheckpointWriter.save`, without each check of
`recover._require_consistent`, and without `_set_aside`.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from t2t_jax.cli.modes import train
from t2t_jax.main import main
from tests.faults.running import hashes, main_refuses
from tests.integration import tiny

pytestmark = pytest.mark.usefixtures("own_signals")

NEEDED = ("config.json", "fingerprints.json", "vocab.model", "vocab.json")


def recover(workdir, capsys, *flags, code=0):
    argv = ["--mode=recover", f"--workdir={workdir}", *flags]
    return main_refuses(capsys, argv, (code,))


def test_what_is_lost_comes_back_equal_and_the_run_goes_on(copy, capsys, monkeypatch):
    before = hashes(copy)
    for name in (*NEEDED, "overrides.json", "data.json", "metrics.jsonl"):
        (copy / name).unlink()
    said = recover(copy, capsys)
    assert all(name in said for name in NEEDED[:3]), said
    assert "from the checkpoint of step 1. Rerun" in said
    after = hashes(copy)
    assert [after[name] for name in NEEDED] == [before[name] for name in NEEDED]
    monkeypatch.setattr(train, "_train", lambda options, *_: len(options.mode))
    assert main(tiny.arguments(copy, steps=2, checkpoint__every_steps=1)) == 5


def test_what_is_whole_is_left_as_it_is(copy, capsys):
    before = hashes(copy)
    assert "Nothing to restore" in recover(copy, capsys)
    assert hashes(copy) == before


DAMAGES = {
    "empty": Path.touch,
    "cut": lambda path: path.write_text("{"),
    "directory": Path.mkdir,
    "pipe": os.mkfifo,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", [*NEEDED[:3], "overrides.json"])
def test_what_is_damaged_is_set_aside_and_restored(copy, capsys, name, damage):
    before = hashes(copy)
    (copy / name).unlink()
    damage(copy / name)
    said = recover(copy, capsys)
    assert f"renamed to corrupt-{name}" in said
    assert os.path.lexists(copy / f"corrupt-{name}")
    after = hashes(copy)
    assert [after.get(name) for name in NEEDED] == [before[name] for name in NEEDED]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", {"seed": 7}, "1 keys differ, such as seed"),
        ("fingerprints.json", {"train": "other"}, "has another 'train'"),
        ("vocab.model", None, "is not the vocabulary in the checkpoint"),
    ],
)
def test_what_can_be_read_is_never_replaced(
    copy, capsys, another_vocabulary, name, content, said
):
    if content is None:
        shutil.copy(another_vocabulary, copy / name)
    else:
        told = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps({**told, **content}))
        (copy / "vocab.model").unlink()
    before = hashes(copy)
    assert said in recover(copy, capsys, code=65)
    assert hashes(copy) == before


@pytest.mark.parametrize("item", ["meta", "files"])
def test_a_damaged_checkpoint_restores_nothing(copy, capsys, item):
    (copy / "config.json").unlink()
    place = copy / "checkpoints" / "1" / item / "metadata"
    place.write_text(place.read_text().replace("a", "b"))
    before = hashes(copy)
    said = recover(copy, capsys, code=65)
    assert "is corrupt" in said
    assert "holds no valid checkpoint" in said
    assert hashes(copy) == before


def test_the_newest_undamaged_checkpoint_is_the_one(copy, capsys):
    shutil.copytree(copy / "checkpoints" / "1", copy / "checkpoints" / "7")
    (copy / "config.json").unlink()
    said = recover(copy, capsys)
    assert "it was saved as step 1" in said
    assert "from the checkpoint of step 1." in said


def test_flags_that_would_change_nothing_are_refused(copy, capsys):
    assert "requires --config" in recover(copy, capsys, "--config.steps=3", code=64)
    file = f"--config={tiny.ROOT / 'configs' / 'phrasebook.py'}"
    assert "holds another experiment" in recover(copy, capsys, file, code=78)


@pytest.mark.parametrize("there", [True, False])
def test_where_there_is_no_run_there_is_nothing_to_restore(tmp_path, capsys, there):
    workdir = tmp_path / "nothing"
    if there:
        workdir.mkdir()
    said = recover(workdir, capsys, code=66)
    assert f"--workdir={workdir} is not a run: " in said
    assert ("config.json is missing" in said) == there
    assert there == workdir.exists()
    assert not (workdir / "lock").exists()
