"""Directories in which arrays can be saved, and what is read of a running run.

Seen to fail: without `require_array_path` in `CheckpointWriter`, without `_read_back`,
without `RemovedCheckpointError`, and without `files` in `newest_valid._read`.
"""

import shutil

import pytest

from t2t_jax.checkpointing.diagnosis import RemovedCheckpointError
from t2t_jax.checkpointing.newest_valid import restore_latest_valid
from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.checkpointing.step_dirs import require_array_path
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.errors import DataError, OutputError
from tests.checkpointing.small_states import params_of, save

PLAIN = "größe ]{}!$'\"%,~#&:;\n\t"


@pytest.mark.parametrize("name", ["a[b]c", "a*", "a?", "back\\slash"])
def test_paths_that_are_read_as_patterns_are_refused(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / name)
    monkeypatch.chdir(tmp_path / name)
    for path in (tmp_path / name / "run", tmp_path / "link" / "run"):
        with pytest.raises(OutputError, match="must have none of"):
            CheckpointWriter(path, keep=1)
    with pytest.raises(OutputError, match="must have none of"):
        require_array_path(tmp_path.__class__("run"))
    assert not (tmp_path / name / "run").exists()


def test_other_paths_hold_checkpoints(tmp_path):
    writer = CheckpointWriter(tmp_path / PLAIN / "checkpoints", keep=1)
    save(writer, 3, "periodic")
    CheckpointReader(writer.directory).verify(3)


def test_what_the_first_save_wrote_is_read_before_any_removal(tmp_path, monkeypatch):
    save(CheckpointWriter(tmp_path, keep=1), 3, "periodic")
    writer = CheckpointWriter(tmp_path, keep=1)
    verify = writer.verify

    def lose(step):
        shutil.rmtree(tmp_path / "5" / "params" / "d")
        verify(step)

    monkeypatch.setattr(writer, "verify", lose)
    with pytest.raises(OutputError, match=r"Step 5 was saved .* cannot be read"):
        save(writer, 5, "periodic")
    CheckpointReader(tmp_path).verify(3)


def test_a_checkpoint_that_its_run_removes_is_followed_by_the_next(tmp_path):
    writer = CheckpointWriter(tmp_path, keep=1)
    save(writer, 3, "periodic")
    reader, seen = CheckpointReader(tmp_path), []

    def read(step):
        seen.append(step)
        if step == 3:
            save(writer, 5, "periodic")
        return reader.meta(step)

    assert reader.read_chosen("last", read)["kinds"] == ["periodic"]
    assert seen == [3, 5]
    with pytest.raises(RemovedCheckpointError, match="removed while it was read"):
        reader.read_chosen("5", lambda step: reader.meta(3))


def test_files_of_another_run_are_damage(tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    for run in (own, other):
        writer, meta = CheckpointWriter(run, keep=2), {"kinds": ["periodic"]}
        for step in (3, 5):
            made = {"meta": meta, "files": {"vocab.model": run.name.encode()}}
            writer.save(step, params=params_of(step), **made)
        writer.wait()
    shutil.rmtree(own / "5" / "files")
    shutil.copytree(other / "5" / "files", own / "5" / "files")
    with pytest.raises(DataError, match="in files"):
        CheckpointReader(own).verify(5)
    restored = restore_latest_valid(CheckpointReader(own), {}, log=print)
    assert restored.step == 3
    assert "in files" in restored.corrupt[0].reason
