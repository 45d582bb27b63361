import fcntl
import os
import time
from pathlib import Path

import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.cache_paths import (
    partial_path,
    remove_abandoned_builds,
    token_caches,
)
from t2t_jax.files import cache_home

DAY = 24 * 3600


@pytest.fixture
def begun(tmp_path):
    """Makes a directory in which a cache was begun, so many days ago."""

    def begin(name: str, *, days: float) -> Path:
        place = partial_path(tmp_path / f"tokens-{name}")
        (place / "shard-00000").mkdir(parents=True)
        (place / "lock").touch()
        then = time.time() - days * DAY
        os.utime(place, (then, then))
        return place

    return begin


def test_the_users_cache_directory_is_asked_for_at_its_place(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
    assert cache_home() == Path("/some/where/t2t_jax")
    for unset in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_home() == Path.home() / ".cache" / "t2t_jax"
    assert token_caches(DataConfig()) == cache_home()
    assert token_caches(DataConfig(cache_dir="~/x")) == Path.home() / "x"


def test_what_was_begun_and_forgotten_is_removed(tmp_path, begun):
    old, young = begun("old", days=15), begun("young", days=13)
    whole = tmp_path / "tokens-whole"
    whole.mkdir()
    os.utime(whole, (1, 1))
    remove_abandoned_builds(tmp_path)
    assert sorted(tmp_path.iterdir()) == [whole, young]
    assert not old.exists()


def test_what_a_process_works_in_stays_however_old_it_is(tmp_path, begun):
    place = begun("held", days=99)
    with (place / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_abandoned_builds(tmp_path)
        assert (place / "shard-00000").exists()
    remove_abandoned_builds(tmp_path)
    assert not place.exists()
