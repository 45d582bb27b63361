"""The directory `--to` of a mode that writes several files."""

from __future__ import annotations

import os
from pathlib import Path

from t2t_jax.errors import OutputError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import require_outside_runs


class OutputDirectory:
    """Receives files, whole or not at all; what has those names is replaced.

    To be made before the work begins: then a name that will not do costs nothing.

    Args:
      name: of the directory, made where there is none.

    Attributes:
      path: of the directory.

    Raises:
      OutputError: it cannot be made, or not be written to.
    """

    def __init__(self, name: str):
        self.path = Path(name)
        require_outside_runs(name, flag="to")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"--to={name} must be a directory that can be written: "
                f"{error.strerror}. Choose another."
            ) from error
        if not os.access(self.path, os.W_OK):
            raise OutputError(
                f"--to={name} must be writable, and is not. Change its permissions or "
                "choose another."
            )

    def write(self, name: str, content: bytes | str) -> None:
        """Writes a file and names it on stdout, on a line of its own."""
        atomic_write(self.path / name, content)
        print(self.path / name, flush=True)
