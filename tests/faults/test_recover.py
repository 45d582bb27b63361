"""`--mode=recover`: a run gets back what it cannot do without, from a checkpoint.

Seen to fail: without the files in `CheckpointWriter.save`, without each check of
`recover._require_consistent`, and without `_set_aside`.
"""

import json
import os
import shutil

import numpy as np
import pytest

from t2t_jax.cli.modes import train
from t2t_jax.main import main
from tests.faults.test_run_files import hashes
from tests.integration import tiny

pytestmark = pytest.mark.usefixtures("own_signals")

NEEDED = ("config.json", "fingerprints.json", "vocab.model", "vocab.json")


@pytest.fixture
def copy(one_step, tmp_path):
    return shutil.copytree(one_step, tmp_path / "run")


def recover(workdir, capsys, *flags, code=0):
    assert main(["--mode=recover", f"--workdir={workdir}", *flags]) == code
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return errors


def test_every_checkpoint_holds_what_a_run_needs(one_step):
    place = one_step / "checkpoints" / "1"
    meta = json.loads((place / "meta" / "metadata").read_text())
    config = json.loads((one_step / "config.json").read_text())
    assert meta["config"] == config
    assert meta["fingerprints"] == json.loads(
        (one_step / "fingerprints.json").read_text()
    )
    assert meta["files"] == {"vocab.model": meta["fingerprints"]["vocabulary"]}
    assert (place / "files" / "metadata").is_file()


def test_all_that_is_lost_comes_back_as_it_was_and_the_run_continues(
    copy, capsys, monkeypatch
):
    before = hashes(copy)
    for name in (*NEEDED, "overrides.json", "data.json", "metrics.jsonl"):
        (copy / name).unlink()
    said = recover(copy, capsys)
    for name in ("vocab.model", "config.json", "fingerprints.json"):
        assert name in said
    assert "from the checkpoint of step 1. Rerun" in said
    assert {name: hashes(copy)[name] for name in NEEDED} == {
        name: before[name] for name in NEEDED
    }
    monkeypatch.setattr(train, "_train", lambda options, *_: len(options.mode))
    assert main(tiny.arguments(copy, steps=2, checkpoint__every_steps=1)) == 5


def test_what_is_whole_is_left_as_it_is(copy, capsys):
    before = hashes(copy)
    assert "Nothing to restore" in recover(copy, capsys)
    assert hashes(copy) == before


def _directory(path):
    path.unlink()
    path.mkdir()


def _pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda p: p.write_text("{"),
        _directory,
        _pipe,
    ],
    ids=["empty", "cut", "directory", "pipe"],
)
@pytest.mark.parametrize("name", ["config.json", "vocab.model", "fingerprints.json"])
def test_what_is_damaged_is_set_aside_and_restored(copy, capsys, name, damage):
    before = hashes(copy)
    damage(copy / name)
    said = recover(copy, capsys)
    assert f"renamed to corrupt-{name}" in said
    assert os.path.lexists(copy / f"corrupt-{name}")
    after = hashes(copy)
    after.pop(f"corrupt-{name}", "")
    assert after == before


@pytest.mark.parametrize("name", ["overrides.json", "data.json"])
def test_what_a_run_can_do_without_is_set_aside_if_it_is_damaged(copy, capsys, name):
    (copy / name).unlink()
    (copy / name).mkdir()
    assert f"renamed to corrupt-{name}" in recover(copy, capsys)
    assert not (copy / name).exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", {"seed": 7}, "1 keys differ, such as seed"),
        ("fingerprints.json", {"train": "other"}, "has another 'train'"),
    ],
)
def test_what_can_be_read_is_never_replaced(copy, capsys, name, content, said):
    told = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps({**told, **content}))
    (copy / "vocab.model").unlink()
    before = hashes(copy)
    assert said in recover(copy, capsys, code=65)
    assert hashes(copy) == before


def test_another_vocabulary_is_never_replaced(copy, capsys, tmp_path):
    other = tmp_path / "other"
    main(["--mode=prepare", *tiny.arguments(other, vocabulary__size=140)])
    shutil.copy(other / "vocab.model", copy)
    before = hashes(copy)
    capsys.readouterr()
    assert "is not the vocabulary in the checkpoint" in recover(copy, capsys, code=65)
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
    assert ("there is no checkpoint" in said) == there
    assert there == workdir.exists()
    assert not (workdir / "lock").exists()


def test_a_run_with_two_vocabularies_gets_both_back(tmp_path, capsys):
    """With a checkpoint written here: what it holds is what counts, not the arrays."""
    from t2t_jax.checkpointing.writer import CheckpointWriter
    from t2t_jax.cli.flags.parser import parse_argv
    from t2t_jax.config import to_dict
    from t2t_jax.data.vocabulary.pair import VocabularyPair

    own = {"vocabulary__source_size": 110, "model__tying": "decoder"}
    workdir = tmp_path / "run"
    argv = tiny.arguments(workdir, **own)
    main(["--mode=prepare", *argv])
    config = parse_argv(argv).config
    both = VocabularyPair.load(workdir, config=config.vocabulary)
    checkpoints = CheckpointWriter(workdir / "checkpoints", keep=1)
    meta = {
        "step": 3,
        "kinds": ["periodic"],
        "config": to_dict(config),
        "fingerprints": {"vocabulary": both.fingerprint},
    }
    params = {"bias": np.zeros(3, np.float32)}
    checkpoints.save(3, params=params, optimizer=None, meta=meta, files=both.files)
    checkpoints.wait()
    before = hashes(workdir)
    for name in ("vocab.model", "vocab_source.model"):
        (workdir / name).unlink()
    recover(workdir, capsys)
    after = hashes(workdir)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {
        "config.json",
        "overrides.json",
        "fingerprints.json",
    }


def test_recovering_waits_for_nobody_who_trains(copy, capsys):
    from t2t_jax.run.workdir import Workdir

    with Workdir(copy).locked():
        assert "is being trained in" in recover(copy, capsys, code=73)
