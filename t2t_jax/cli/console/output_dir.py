"""The directory `--to` of a mode that writes several files."""

from __future__ import annotations

import os
from pathlib import Path

from t2t_jax.errors import OutputError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import require_outside_runs


class OutputDirectory:
    """Writes files atomically into a directory, which is created if missing.

    To be constructed before the work begins, so that an invalid path fails early.

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
