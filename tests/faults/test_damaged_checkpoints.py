"""Checkpoints that are damaged: never used, named, set aside, and the one before used.

Seen to fail: where what was in the way of a save went with what it had replaced, and
with unsealed JSON to decide what is kept (exit 70); the rest in tests/checkpointing/.
"""

import gc
import json
import os
import re
import shutil

import pytest

from tests.faults import running
from tests.faults.running import hashes
from tests.integration import tiny

SAVED = (4, 8, 12)

# `running.parameters` reads damaged ones by Orbax, which leaves coroutines behind.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    yield
    gc.collect()


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Makes a complete run of twelve steps, with three checkpoints."""
    workdir = tmp_path_factory.mktemp("sound") / "run"
    running.finish(workdir, checkpoint__every_steps=4)
    assert running.saved(workdir) == list(SAVED)
    return workdir


@pytest.fixture
def workdir(sound, tmp_path):
    """Copies the run, for it to be damaged; its token cache stays where it is."""
    copy = tmp_path / "run"
    shutil.copytree(sound, copy)
    return copy


def go_on(workdir, sound, *, code=0, **changed):
    """Gives the command of the run again; returns what it says."""
    changed = {"checkpoint__every_steps": 4, **changed}
    cache = {"data__cache_dir": sound.parent / "cache"}
    return running.finish(workdir, code=code, **cache, **changed)


def largest(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return max(files, key=lambda path: path.stat().st_size)


def flipped_in(item):
    """Makes what flips one byte so that other numbers are read, without an error.

    Some bytes of a data file are read by nobody, and others make Orbax fail; this is
    the damage to be feared most.
    """

    def flip(folder):
        path = largest(folder / item)
        read = (folder.parents[1], int(folder.name), (item,))
        before, sound = running.parameters(*read), path.read_bytes()
        # In large strides, as what nobody reads lies together.
        for stride in range(len(sound)):
            place = stride * 1009 % len(sound)
            changed = bytes([sound[place] ^ 1])
            path.write_bytes(sound[:place] + changed + sound[place + 1 :])
            try:
                running.require_bit_equal(running.parameters(*read), before)
            except AssertionError:
                return
            except Exception:  # Orbax raises just that.
                continue
        raise AssertionError(f"no byte of {path} matters")

    return flip


def truncated(folder):
    # All of them: half of a single one may be what nobody reads any more.
    for path in (folder / "params").rglob("d/*"):
        os.truncate(path, 100)


def without_manifest(folder):
    (folder / "params" / "manifest.ocdbt").unlink()


def garbage(folder):
    (folder / "meta" / "metadata").write_bytes(b'{"step": 12, \xff')


def another_number(folder):
    path = folder / "meta" / "metadata"
    meta = json.loads(path.read_text())
    meta["progress"]["position"] = [7, 0]
    path.write_text(json.dumps(meta))


def emptied(folder):
    for part in ("params", "optimizer", "meta"):
        shutil.rmtree(folder / part)


DAMAGES = {
    "a byte of the parameters": (flipped_in("params"), r"in params, 1 different \("),
    "a byte of the optimizer": (flipped_in("optimizer"), r"in optimizer, 1 diff"),
    "cut files": (truncated, "is corrupt: "),
    "no manifest": (without_manifest, "is corrupt: "),
    "garbage": (garbage, "its meta cannot be read"),
    "another position": (another_number, "its meta differs from what was saved"),
    "only a name": (emptied, "its meta cannot be read"),
}


def test_damaged_checkpoints_are_set_aside_and_the_one_before_them_used(tmp_path):
    workdir = tmp_path / "run"
    every = {"steps": 8, "checkpoint__every_steps": 1, "checkpoint__keep": 8}
    running.finish(workdir, **every)
    whole = shutil.copytree(workdir, tmp_path / "whole")
    checkpoints = workdir / "checkpoints"
    damaged = dict(zip((8, 7, 6, 5, 4, 3, 2), DAMAGES, strict=True))
    for step, damage in damaged.items():
        DAMAGES[damage][0](checkpoints / str(step))
    said = running.finish(workdir, **every)
    assert "Traceback" not in said
    for step, damage in damaged.items():
        named = re.escape(f"Checkpoint {checkpoints / str(step)} is corrupt: ")
        reason = DAMAGES[damage][1].removeprefix("is corrupt: ")
        assert re.search(f"{named}.*{reason}", said), damage
        assert f"Renamed to corrupt-{step}." in said
    assert f"Resuming from step 1 in {workdir}." in said
    names = {path.name for path in checkpoints.iterdir()}
    assert names == {*map(str, range(1, 9)), *(f"corrupt-{step}" for step in damaged)}
    # What is trained again is what was trained before.
    running.require_same(workdir, whole, 8)


def test_two_damaged_ones_are_both_set_aside_beside_an_older_one(workdir, sound):
    checkpoints = workdir / "checkpoints"
    shutil.copytree(checkpoints / "4", checkpoints / "corrupt-12")
    for step in (8, 12):
        truncated(checkpoints / str(step))
    said = go_on(workdir, sound)
    assert "Renamed to corrupt-12-2." in said
    assert "Renamed to corrupt-8." in said
    assert "Resuming from step 4" in said
    assert running.saved(workdir) == list(SAVED)


def test_where_none_is_good_nothing_is_begun_and_nothing_changed(workdir, sound):
    checkpoints = workdir / "checkpoints"
    for step in SAVED:
        garbage(checkpoints / str(step))
    before = hashes(checkpoints)
    said = go_on(workdir, sound, code=65)
    for step in SAVED:
        assert f"error: Checkpoint {checkpoints / str(step)} is corrupt: its" in said
    assert "has no valid checkpoint. Nothing was changed" in said
    assert "Traceback" not in said
    assert hashes(checkpoints) == before
    assert running.last_step(workdir) == 12  # of the records, too, none is cut


def test_a_run_with_only_an_empty_folder_left_does_not_begin_again(workdir, sound):
    checkpoints = workdir / "checkpoints"
    shutil.rmtree(checkpoints)
    (checkpoints / "12").mkdir(parents=True)
    said = go_on(workdir, sound, code=65)
    assert "Cannot start a run" in said
    assert "but holds 12." in said
    assert list(checkpoints.iterdir()) == [checkpoints / "12"]


def test_what_only_bears_a_number_harms_neither_resuming_nor_saving(workdir, sound):
    checkpoints = workdir / "checkpoints"
    (checkpoints / "99").mkdir()
    (checkpoints / "13").write_text("notes")
    (checkpoints / "14").mkdir()
    (checkpoints / "14" / "notes").write_text("more")
    said = go_on(workdir, sound, steps=14, checkpoint__every_steps=1)
    for name in ("13", "14", "99"):
        assert f"Ignoring {checkpoints / name}: not a checkpoint." in said
    assert "Resuming from step 12" in said
    assert running.saved(workdir)[-3:] == [13, 14, 99]
    assert (checkpoints / "stray-13").read_text() == "notes"
    assert (checkpoints / "stray-14" / "notes").read_text() == "more"
    assert len(running.parameters(workdir, 14)) > 30


def read(workdir, *flags):
    done = tiny.run(f"--workdir={workdir}", *flags, stdin=b"A man.\n", timeout=240)
    return done.returncode, done.stderr.decode()


def test_who_reads_is_told_of_damage_and_of_other_steps_and_renames_nothing(workdir):
    folder = workdir / "checkpoints" / "12"
    flipped_in("params")(folder)
    before = hashes(workdir / "checkpoints")
    mean = f"--to={workdir.parent / 'mean'}"
    for flags in (
        ("--mode=translate", "--checkpoint=12"),
        ("--mode=average", "--average_steps=4,8,12", "--force", mean),
    ):
        code, said = read(workdir, *flags)
        assert code == 65, said
        assert f"error: Checkpoint {folder} is corrupt: " in said
        assert "Other steps there: 4, 8." in said
        assert "Traceback" not in said
    assert hashes(workdir / "checkpoints") == before
    assert read(workdir, "--mode=translate", "--checkpoint=8")[0] == 0


def test_a_checkpoint_whose_score_nobody_knows_is_not_passed_over_for_the_best(workdir):
    garbage(workdir / "checkpoints" / "8")
    code, said = read(workdir, "--mode=translate")
    assert code == 65
    assert f"Checkpoint {workdir / 'checkpoints' / '8'} is corrupt" in said
    assert read(workdir, "--mode=translate", "--checkpoint=last")[0] == 0


@pytest.mark.soak
def test_two_processes_set_aside_what_one_of_them_cannot_read(workdir, sound):
    flipped_in("optimizer")(workdir / "checkpoints" / "12")
    said = go_on(workdir, sound, processes=2, seconds=200)
    assert said.count("Renamed to corrupt-12.") == 1
    assert "Resuming from step 8" in said
    assert running.saved(workdir) == list(SAVED)
