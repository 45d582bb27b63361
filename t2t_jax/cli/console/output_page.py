"""The file `--to` of a mode that writes one page."""

from __future__ import annotations

import os
from pathlib import Path

from t2t_jax.errors import OutputError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import require_outside_runs


class OutputPage:
    """Writes a page atomically.

    To be constructed before the work begins, so that an invalid path fails early.

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
        reason = ""
        if self.path.is_dir():
            reason = "it is a directory"
        elif not folder.is_dir():
            reason = f"{folder} is not a directory"
        elif not os.access(folder, os.W_OK | os.X_OK):
            reason = f"{folder} is not writable"
        if reason:
            raise self._error(reason)

    def write(self, page: str) -> None:
        """Writes the page and prints its path to stdout.

        Raises:
          OutputError: the disk is full, or the file is not writable.
        """
        try:
            atomic_write(self.path, page)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        print(self.path, flush=True)

    def _error(self, reason: str) -> OutputError:
        return OutputError(
            f"Cannot write --to={self.path}: {reason}. Choose another file."
        )
