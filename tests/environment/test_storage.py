import os
from pathlib import Path

import pytest

from t2t_jax.environment import storage
from t2t_jax.environment.storage import (
    check_storage,
    directory_size,
    existing_parent,
    file_system,
)


def found_in(workdir, *, is_given=True, **environ):
    checks = check_storage(workdir, is_given=is_given, environ=environ)
    return {check.name: check for check in checks}


def test_a_workdir_need_not_exist_and_nothing_is_left_behind(tmp_path):
    cache = tmp_path / "cache"
    found = found_in(tmp_path / "a" / "b", XDG_CACHE_HOME=str(cache))
    assert {found[name].status for name in ("workdir", "write", "locks")} == {"ok"}
    assert found["write"].details["bytes_per_second"] > 0
    assert found["workdir"].details["path"] == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("is_given", "status"), [(True, "error"), (False, "warning")])
def test_a_directory_that_cannot_be_written_to(monkeypatch, tmp_path, is_given, status):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(storage.tempfile, "TemporaryFile", refuse)
    found = found_in(tmp_path, is_given=is_given, XDG_CACHE_HOME=str(tmp_path))
    assert found["write"].status == status
    assert "cannot be written to: Permission denied" in found["write"].message
    assert "locks" not in found


def test_a_file_where_the_directory_should_be(tmp_path):
    (tmp_path / "file").touch()
    found = found_in(tmp_path / "file" / "run", XDG_CACHE_HOME=str(tmp_path))
    assert found["workdir"].status == "error"
    assert f"{tmp_path / 'file'} is a file" in found["workdir"].message


@pytest.mark.parametrize(
    ("flock", "words"),
    [
        (lambda *_: None, "have no effect"),
        (None, "do not work"),
    ],
)
def test_locks_that_do_not_lock_are_an_error(monkeypatch, tmp_path, flock, words):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(storage.fcntl, "flock", flock or refuse)
    check = found_in(tmp_path, XDG_CACHE_HOME=str(tmp_path))["locks"]
    assert check.status == "error"
    assert words in check.message


def test_little_space_is_a_warning_and_none_an_error(monkeypatch, tmp_path):
    for free, status in ((3 << 30, "ok"), (1 << 30, "warning"), (1 << 20, "error")):
        usage = storage.shutil._ntuple_diskusage(10 << 30, 0, free)
        monkeypatch.setattr(storage.shutil, "disk_usage", lambda _, usage=usage: usage)
        found = found_in(tmp_path, XDG_CACHE_HOME=str(tmp_path))
        assert found["workdir"].status == status


def test_caches_have_their_size_and_place(tmp_path):
    for name, size in (("tokens-a/x", 300), ("tokens-b/y", 7), ("compiled/k/z", 11)):
        path = tmp_path / "t2t_jax" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    found = found_in(tmp_path, XDG_CACHE_HOME=str(tmp_path))
    assert found["token caches"].details["bytes"] == 307
    assert found["compiled programs"].details["bytes"] == 11
    assert found["token caches"].message.startswith("2 in ")


def test_a_cache_of_programs_that_others_can_write_is_an_error(tmp_path):
    (tmp_path / "programs").mkdir()
    os.chmod(tmp_path / "programs", 0o777)
    named = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "programs")}
    found = found_in(tmp_path, XDG_CACHE_HOME=str(tmp_path), **named)
    assert found["cache of programs"].status == "error"
    remote = {"JAX_COMPILATION_CACHE_DIR": "gs://bucket/programs"}
    found = found_in(tmp_path, XDG_CACHE_HOME=str(tmp_path), **remote)
    assert "cache of programs" not in found


def test_tfds_sets_are_listed(tmp_path):
    for name in ("wmt14_translate", "downloads", ".cache"):
        (tmp_path / name).mkdir()
    places = {"TFDS_DATA_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    assert found_in(tmp_path, **places)["tfds"].details["sets"] == ["wmt14_translate"]


def test_the_mount_that_holds_a_path_is_the_longest(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/a / ext4 rw 0 0\nhost:/x /data nfs4 rw 0 0\n"
        "host:/y /data/my\\040files cifs rw 0 0\nbroken\n"
    )
    names = ("/data/my files/run", "/data/run", "/database", "/")
    found = [file_system(Path(name), mounts) for name in names]
    assert found == ["cifs", "nfs4", "ext4", "ext4"]


def test_a_large_directory_is_scanned_for_a_limited_time(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(bytes(13))
    assert directory_size(tmp_path) == (13, True)
    assert directory_size(tmp_path, seconds=-1) == (0, False)
    assert existing_parent(tmp_path / "x" / "y") == tmp_path
