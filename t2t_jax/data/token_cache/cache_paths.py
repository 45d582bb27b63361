"""Directories of token caches: their paths, unfinished builds, and who may build."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from t2t_jax.data.config import DataConfig
from t2t_jax.data.files.progress_bar import ProgressBar
from t2t_jax.errors import writing
from t2t_jax.files import cache_home, expand_user, locked

BUILDING = ".building"
_ABANDONED_SECONDS = 14 * 24 * 3600


def token_caches(config: DataConfig) -> Path:
    """Returns the directory of all token caches, which may not exist.

    Raises:
      ConfigError: its home directory does not exist.
    """
    if not config.cache_dir:
        return cache_home()
    return expand_user(config.cache_dir, f"data.cache_dir={config.cache_dir!r}")


def write_errors(home: Path) -> AbstractContextManager[None]:
    """Names the directory of token caches, and what to do, in errors of writing it.

    Raises:
      OSError: the disk is full or fails.
      OutputError: the directory is not writable.
    """
    advice = "set config.data.cache_dir or XDG_CACHE_HOME to another directory"
    return writing(home, problem="the token cache cannot be written", advice=advice)


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
    with write_errors(home):
        home.mkdir(parents=True, exist_ok=True)
        # Permissions do not reveal a read-only file system, so try to write.
        TemporaryDirectory(prefix=".", dir=home).cleanup()


def partial_path(path: Path) -> Path:
    """Returns the directory in which a cache is built, beside its final path."""
    return path.with_name(f"{path.name}{BUILDING}")


def publish(finished: Path, path: Path) -> None:
    """Renames a finished cache to its final path, moving a damaged one away."""
    if path.exists():
        os.rename(path, finished.with_name("damaged"))
    os.rename(finished, path)


@contextmanager
def exclusive_lock(building: Path, progress: ProgressBar) -> Iterator[None]:
    """Locks a build directory until this process ends; waits for other processes.

    Args:
      building: created if missing. The holder may remove it.
    """
    wait = 0.0
    with ExitStack() as held:
        while True:
            building.mkdir(parents=True, exist_ok=True)
            try:
                held.enter_context(locked(building / "lock", wait=wait))
                break
            except BlockingIOError:
                final = building.with_suffix("")
                progress.log(f"Another process is preparing {final}: waiting for it …")
                wait = math.inf
            except FileNotFoundError:
                pass  # The holder has removed the directory.
        yield


def remove_stale_build(building: Path) -> None:
    """Removes an unfinished build, unless a process holds its lock."""
    # The lock holder removes it itself.
    with suppress(OSError), locked(building / "lock"):
        shutil.rmtree(building, ignore_errors=True)


def remove_abandoned_builds(home: Path) -> None:
    """Removes unfinished builds that were not touched for two weeks."""
    oldest = time.time() - _ABANDONED_SECONDS
    for building in home.glob(f"*-*{BUILDING}"):
        with suppress(OSError):  # removed by another process meanwhile
            if building.stat().st_mtime < oldest:
                remove_stale_build(building)
