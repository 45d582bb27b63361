"""Paths of token caches, and removal of unfinished builds."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from t2t_jax.data.config import DataConfig
from t2t_jax.errors import write_error
from t2t_jax.files import cache_home, expand_user, locked

_BUILDING = ".building"
_ABANDONED_SECONDS = 14 * 24 * 3600


def token_caches(config: DataConfig) -> Path:
    """Returns the directory of all token caches, which may not exist.

    Raises:
      ConfigError: its home directory does not exist.
    """
    if not config.cache_dir:
        return cache_home()
    return expand_user(config.cache_dir, f"data.cache_dir={config.cache_dir!r}")


def check_cache_writable(config: DataConfig) -> None:
    """Checks that token caches can be written, or that some exist.

    Raises:
      ConfigError: the home directory of the caches does not exist.
      OSError: the disk is full or fails.
      OutputError: the directory is not writable and holds no cache.
    """
    home = token_caches(config)
    with suppress(OSError):
        if any(home.glob("tokens-*")):
            return  # A shared, perhaps read-only directory.
    try:
        home.mkdir(parents=True, exist_ok=True)
        # Permissions do not reveal a read-only file system, so try to write.
        with TemporaryDirectory(prefix=".", dir=home):
            pass
    except OSError as error:
        raise write_error(
            home,
            error,
            problem="the token cache cannot be written",
            advice="set config.data.cache_dir or XDG_CACHE_HOME to another directory",
        ) from error


def partial_path(path: Path) -> Path:
    """Returns the directory in which a cache is built, beside its final path."""
    return path.with_name(f"{path.name}{_BUILDING}")


def publish(finished: Path, path: Path) -> None:
    """Renames a finished cache to its final path, moving a damaged one away."""
    if path.exists():
        os.rename(path, finished.with_name("damaged"))
    os.rename(finished, path)


def remove_stale_build(building: Path) -> None:
    """Removes an unfinished build, unless a process holds its lock."""
    with contextlib.suppress(OSError):  # the lock holder removes it itself
        with locked(building / "lock"):
            shutil.rmtree(building, ignore_errors=True)


def remove_abandoned_builds(home: Path) -> None:
    """Removes unfinished builds that were not touched for two weeks."""
    oldest = time.time() - _ABANDONED_SECONDS
    for building in home.glob(f"tokens-*{_BUILDING}"):
        with contextlib.suppress(OSError):  # removed by another process meanwhile
            if building.stat().st_mtime < oldest:
                remove_stale_build(building)
