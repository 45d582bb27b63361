import hashlib
import operator
import os
import time
from pathlib import Path

import pytest

from t2t_jax.data.files.file_facts import digest

ONE, TWO = b"one\n" * 300_000, b"two\n" * 300_000


@pytest.fixture
def memory(cache_home):
    return cache_home / "t2t_jax" / "file_facts.json"


@pytest.fixture
def settle(monkeypatch):
    """Lets so many seconds pass since whatever was written so far."""
    real, ahead = time.time_ns, [0]
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead[0])

    def settle(seconds: float) -> None:
        ahead[0] += int(seconds * 1e9)

    return settle


@pytest.fixture
def readings(monkeypatch):
    """Lists the files that are read for their digest."""
    read, plain = [], hashlib.file_digest

    def counted(file, name):
        read.append(Path(file.name).name)
        return plain(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    return read


@pytest.fixture
def text(tmp_path, settle):
    """A file of a megabyte and more, written a while ago."""
    path = tmp_path / "a.en"
    path.write_bytes(ONE)
    settle(3)
    return path


def test_a_file_is_read_for_its_digest_once_in_all_starts(text, readings, memory):
    assert digest(text) == digest(text) == hashlib.sha256(ONE).digest()
    assert readings == ["a.en"]
    assert memory.stat().st_mode & 0o777 == 0o600


def test_as_many_bytes_with_the_old_time_are_read_again(text, readings, settle):
    digest(text)
    before = text.stat()
    with text.open("r+b") as file:  # the same inode
        file.write(TWO)
    os.utime(text, ns=(before.st_atime_ns, before.st_mtime_ns))
    now, same = text.stat(), operator.attrgetter("st_size", "st_ino", "st_mtime_ns")
    assert same(now) == same(before)
    settle(3)
    assert digest(text) == hashlib.sha256(TWO).digest()


@pytest.mark.parametrize("newest", ["mtime", "ctime"])
def test_what_was_just_changed_is_not_remembered(tmp_path, readings, memory, newest):
    path = tmp_path / "a.en"
    path.write_bytes(ONE)
    if newest == "ctime":
        os.utime(path, ns=(1, 1))
    digest(path)
    digest(path)
    assert len(readings) == 2
    assert not memory.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-9],
        lambda content: content.replace(b'"sha256": "', b'"sha256": "0', 1),
        lambda content: b"\xff" + content,
    ],
)
def test_a_damaged_memory_is_forgotten(text, readings, memory, damage):
    digest(text)
    memory.write_bytes(damage(memory.read_bytes()))
    assert digest(text) == digest(text) == hashlib.sha256(ONE).digest()
    assert len(readings) == 2


def test_a_memory_that_others_could_write_is_not_believed(text, readings, memory):
    digest(text)
    memory.chmod(0o666)
    digest(text)
    assert len(readings) == 2
    assert memory.stat().st_mode & 0o777 == 0o600


def test_a_home_that_is_read_only_is_no_error(text, readings, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert digest(text) == hashlib.sha256(ONE).digest()
