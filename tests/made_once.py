"""Directories that the workers of pytest-xdist make once, and all of them read."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path


def made_once(directory: Path, make: Callable[[Path], object]) -> Path:
    """Makes a directory, unless another process has made it or is making it.

    The others wait. If `make` raises, what it left is removed, and the next process
    that asks tries again.

    Args:
      directory: its path, the same for all processes.
      make: fills the directory, which exists and is empty.
    """
    with directory.with_name(f"{directory.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = directory.with_name(f"{directory.name}.complete")
        if not complete.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            make(directory)
            complete.touch()
    return directory
