"""The directory or the page `--to` of a mode, checked before the work begins."""

from __future__ import annotations

import os
from pathlib import Path

from t2t_jax.errors import OutputError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import require_outside_runs


class OutputDirectory:
    """Writes files atomically into a directory, which is created if missing.

    Raises:
      OutputError: the directory cannot be created, or is not writable.
    """

    def __init__(self, name: str):
        self.path = Path(name)
        require_outside_runs(name, flag="to")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"Cannot create --to={name}: {error.strerror}. Choose another "
                "directory."
            ) from error
        if not os.access(self.path, os.W_OK):
            raise OutputError(
                f"--to={name} is not writable. Fix permissions or choose another "
                "directory."
            )

    def write(self, name: str, content: bytes | str) -> None:
        """Writes a file and prints its path to stdout."""
        atomic_write(self.path / name, content)
        print(self.path / name, flush=True)


class OutputPage:
    """Writes a page atomically.

    Args:
      name: of the file, as the user gave it.
      own: a file of a run that may be replaced; every other one is refused.

    Raises:
      OutputError: the file cannot be written.
    """

    def __init__(self, name: str | Path, *, own: Path | None = None):
        self.path = Path(name)
        if own is None or os.path.realpath(name) != os.path.realpath(own):
            require_outside_runs(name, flag="to")
        folder = self.path.parent
        if self.path.is_dir():
            raise _refusal(self.path, "it is a directory")
        if not folder.is_dir():
            raise _refusal(self.path, f"{folder} is not a directory")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise _refusal(self.path, f"{folder} is not writable")

    def write(self, page: str) -> None:
        """Writes the page and prints its path to stdout.

        Raises:
          OutputError: the disk is full, or the file is not writable.
        """
        try:
            atomic_write(self.path, page)
        except OSError as error:
            raise _refusal(self.path, error.strerror) from error
        print(self.path, flush=True)


def _refusal(path: Path, reason: str | None) -> OutputError:
    return OutputError(f"Cannot write --to={path}: {reason}. Choose another file.")
