"""Where what has been made of text is kept, and how what is left over goes again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from t2t_jax.data.config import DataConfig
from t2t_jax.errors import ConfigError, write_error

_BUILDING = ".building"
_FORGOTTEN_SECONDS = 14 * 24 * 3600


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns t2t_jax in XDG_CACHE_HOME, or in ~/.cache where that is not set.

    Raises:
      ConfigError: that is not set, and there is no home directory.
    """
    home = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):
        return Path(home) / "t2t_jax"
    return _expanded("~/.cache", "The user's cache directory") / "t2t_jax"


def token_caches(config: DataConfig) -> Path:
    """Returns the directory of all token caches, which need not be there.

    Raises:
      ConfigError: it is in the home directory of a user who has none.
    """
    if not config.cache_dir:
        return cache_home()
    return _expanded(config.cache_dir, f"data.cache_dir={config.cache_dir!r}")


def require_cache_place(config: DataConfig) -> None:
    """Checks that token caches can be written, or may have been before.

    To be called before a vocabulary is learnt, which may take long.

    Raises:
      ConfigError: they are in the home directory of a user who has none.
      OSError: the disk is full or fails.
      OutputError: none can be written, and there is none.
    """
    home = token_caches(config)
    with suppress(OSError):
        if any(home.glob("tokens-*")):
            return  # Somebody else's, who lets others read them.
    try:
        home.mkdir(parents=True, exist_ok=True)
        # Tried, for permissions do not tell of a file system that is only read.
        with TemporaryDirectory(prefix=".", dir=home):
            pass
    except OSError as error:
        raise write_error(
            home,
            error,
            told="the token cache cannot be written",
            change="set config.data.cache_dir or XDG_CACHE_HOME to another directory",
        ) from error


def _expanded(path: str, name: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"{name} is under {Path(path).parts[0]}, which is no home directory. "
            "Change config.data.cache_dir."
        ) from error


def partial_path(place: Path) -> Path:
    """Names the directory beside its place in which a cache is built."""
    return place.with_name(f"{place.name}{_BUILDING}")


def publish(whole: Path, place: Path) -> None:
    """Renames a finished cache to its place, where a damaged one may be."""
    if place.exists():
        os.rename(place, whole.with_name("damaged"))
    os.rename(whole, place)


def remove_stale_build(building: Path) -> None:
    """Removes what a process has left that built a cache; not if one still does."""
    with contextlib.suppress(OSError):  # whoever holds the lock is about to do it
        with (building / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(building, ignore_errors=True)


def remove_abandoned_builds(home: Path) -> None:
    """Removes what no process builds, or has added to for two weeks.

    Args:
      home: the directory of all token caches. What others have begun there for other
        text or settings is gone on with by the same command, until it is that old.
    """
    newest = time.time() - _FORGOTTEN_SECONDS
    for building in home.glob(f"tokens-*{_BUILDING}"):
        with contextlib.suppress(OSError):  # removed by another process meanwhile
            if building.stat().st_mtime < newest:
                remove_stale_build(building)
