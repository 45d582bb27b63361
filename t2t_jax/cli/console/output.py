"""The directory or the page `--to` of a mode, checked before the work begins."""

from __future__ import annotations

import os
from pathlib import Path

from t2t_jax.errors import OutputError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import require_outside_runs


def make_directory(name: str) -> Path:
    """Creates the directory of a mode's files, if it is missing.

    Raises:
      OutputError: it cannot be created, or is not writable.
    """
    path = Path(name)
    require_outside_runs(name, flag="to")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refusal(path, error.strerror, verb="create") from error
    if not os.access(path, os.W_OK):
        raise _refusal(path, "it is not writable. Fix permissions")
    return path


def check_page(name: str | Path, *, own: Path | None = None) -> Path:
    """Checks that a page can be written.

    Args:
      name: of the file, as the user gave it.
      own: a file of a run that may be replaced; every other one is refused.

    Raises:
      OutputError: the file cannot be written.
    """
    path, folder = Path(name), Path(name).parent
    if own is None or os.path.realpath(name) != os.path.realpath(own):
        require_outside_runs(name, flag="to")
    if path.is_dir():
        raise _refusal(path, "it is a directory")
    if not folder.is_dir():
        raise _refusal(path, f"{folder} is not a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refusal(path, f"{folder} is not writable. Fix permissions")
    return path


def write_file(path: Path, content: bytes | str) -> None:
    """Writes a file atomically, and prints its path to stdout.

    Raises:
      OutputError: the disk is full, or the file is not writable.
    """
    try:
        atomic_write(path, content)
    except OSError as error:
        raise _refusal(path, error.strerror) from error
    print(path, flush=True)


def _refusal(path: Path, reason: str | None, *, verb: str = "write") -> OutputError:
    return OutputError(f"Cannot {verb} --to={path}: {reason}. Choose another.")
