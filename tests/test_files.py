"""Seen to fail: without each check of the readers and of `safe_child_path`."""

import errno
import json
import os
import re
import threading
import time
from pathlib import Path

import pytest

from t2t_jax.errors import DataError
from t2t_jax.files import (
    atomic_write,
    locked,
    read_json_object,
    read_limited,
    safe_child_path,
    write_once,
)


def test_a_file_is_replaced_and_no_temporary_file_is_left(tmp_path):
    path = tmp_path / "größe.txt"
    atomic_write(path, "eins")
    atomic_write(path, b"zwei")
    assert path.read_bytes() == b"zwei"
    assert [p.name for p in tmp_path.iterdir()] == ["größe.txt"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    atomic_write(path, "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        atomic_write(path, "new")
    with pytest.raises(OSError, match=r"'/proc/none'"):  # Not the temporary one.
        atomic_write(Path("/proc/none"), "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_file_is_read_up_to_its_bound_and_not_beyond(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"seven b")
    assert read_limited(path, max_bytes=7, advice="Leave it.") == b"seven b"
    with pytest.raises(DataError, match=r"at most 6 bytes, and has 7\. Leave it\."):
        read_limited(path, max_bytes=6, advice="Leave it.")


def test_a_file_written_once_is_never_replaced(tmp_path):
    path = tmp_path / "vocab.model"
    write_once(path, b"one", advice="Leave it.")
    write_once(path, "one", advice="Leave it.")
    with pytest.raises(DataError, match=r"vocab\.model: it exists .* Leave it\."):
        write_once(path, b"two", advice="Leave it.")
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["vocab.model"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_links_keeps_the_rule(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.link", refuse)
    test_a_file_written_once_is_never_replaced(tmp_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b'{"a": 1,\n "b" 2}', "line 2 column 6"),
        (b'{"a":\n "\xff"}', "can't decode byte 0xff in position 8"),
        (b"[1]", "it is not a JSON object"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"b": {"a": 1, "a": 2}}', "a name occurs twice in one object"),
        (b'{"a": ' + b"9" * 9_999 + b"}", "a number has too many digits"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_an_invalid_json_object_is_damaged(tmp_path, content, why):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"a\.json is damaged: .*{re.escape(why)}"):
        read_json_object(path, advice="Remove it.")


@pytest.mark.parametrize("name", ["../a", "..", "", "b/a", "/etc/passwd", "link"])
def test_a_name_from_a_file_never_leads_out_of_the_directory(tmp_path, name):
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(DataError, match=re.escape(repr(name))):
        safe_child_path(tmp_path, name)
    assert safe_child_path(tmp_path, "..a") == tmp_path / "..a"


def test_names_of_files_that_are_not_utf_8_are_written_and_read_again(tmp_path):
    names = {"path": "gr\udcf6\udcdfe/\udcff", "text": "größe"}
    atomic_write(tmp_path / "a.json", json.dumps(names, ensure_ascii=False))
    assert read_json_object(tmp_path / "a.json", advice="") == names


def test_a_lock_has_one_owner_and_can_be_waited_for(tmp_path):
    path = tmp_path / "lock"
    with locked(path) as file:
        os.write(file, b"mine")
        for is_shared in (False, True):
            with pytest.raises(BlockingIOError), locked(path, is_shared=is_shared):
                pass
    with locked(path, is_shared=True), locked(path, is_shared=True):
        pass
    held = locked(path)
    held.__enter__()
    threading.Timer(0.2, held.__exit__, (None, None, None)).start()
    begun = time.monotonic()
    with locked(path, wait=60):
        assert time.monotonic() - begun < 30


def test_a_lock_file_that_its_owner_has_removed_locks_nothing(tmp_path):
    path = tmp_path / "lock"
    held = locked(path)
    held.__enter__()

    def remove():
        path.unlink()
        held.__exit__(None, None, None)

    threading.Timer(0.2, remove).start()
    with locked(path, wait=60) as file:
        assert os.path.samestat(os.fstat(file), path.stat())
