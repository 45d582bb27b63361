"""A wrong clock stops nothing: no wait, no lock and no cache compares it with files.

Durations come from the monotonic clock. Whole runs under libfaketime, with
FAKETIME_DONT_FAKE_MONOTONIC=1 and 1971 or 2039, ended as usual; without it any wait of
Python that has a timeout hangs there, in a program of one line too. The clock that
stands still: tests/training/test_loop.py. The search for unused programs:
tests/devices/test_compilation_cache.py.
"""

import datetime
import os

import pytest

from t2t_jax.cli.modes import train
from t2t_jax.data.files import file_facts
from t2t_jax.main import main
from tests.integration import tiny


@pytest.fixture(autouse=True)
def _own_cache(own_signals, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))


def set_clock(monkeypatch, year):
    seconds = datetime.datetime(year, 1, 1, tzinfo=datetime.UTC).timestamp()
    monkeypatch.setattr("time.time", lambda: seconds)
    monkeypatch.setattr("time.time_ns", lambda: int(seconds * 1e9))


@pytest.mark.parametrize("year", [1969, 1971, 2039])
def test_a_run_starts_and_starts_again(tmp_path, monkeypatch, year):
    monkeypatch.setattr(train, "_train", lambda *_: 0)
    argv = tiny.arguments(tmp_path / "run")
    assert main(["--mode=prepare", *argv]) == 0
    set_clock(monkeypatch, year)
    assert main(argv) == 0
    other = tiny.arguments(tmp_path / "other", data__train="phrasebook:train:200")
    assert main(other) == 0
    assert main(other) == 0


@pytest.mark.parametrize("year", [1971, 2039])
def test_what_was_learnt_of_a_file_is_that_of_its_content(tmp_path, monkeypatch, year):
    text = tmp_path / "text"
    text.write_bytes(b"a" * (2 << 20))
    set_clock(monkeypatch, year)
    first = file_facts.digest(text)
    text.write_bytes(b"b" * (2 << 20))
    os.utime(text, (0, 0))
    assert file_facts.digest(text) != first
