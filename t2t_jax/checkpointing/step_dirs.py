"""The directories of a run's checkpoints on disk; needs neither JAX nor Orbax.

A checkpoint is a directory named by the number of its step. It gets that name when it
is completely written. What a crash leaves, an empty directory or a file of such a name
is therefore not a checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from itertools import chain, count
from pathlib import Path
from typing import Any

from t2t_jax.errors import OutputError
from t2t_jax.files import free_path

Meta = dict[str, Any]
"""The JSON object of a checkpoint."""

SAFETENSORS = "model.safetensors"
"""The file of a model directory that holds the parameters instead of a checkpoint."""

_NUMBER = re.compile(r"0|[1-9][0-9]*")
# Orbax writes all three; a directory with only some of them is a corrupt checkpoint.
_PARTS = ("params", "meta", "_CHECKPOINT_METADATA")
_PARTIAL = "*.orbax-checkpoint-tmp*"
_REMOVED = re.compile(r"removed-((probe|replaced)-)?\d+(-\d+)?")
_REPLACED = re.compile(r"replaced-(\d+)(-\d+)?")


def is_safetensors_dir(directory: Path) -> bool:
    """Returns whether a run or model directory has `SAFETENSORS` and no checkpoints."""
    has_checkpoints = (directory / "checkpoints").is_dir()
    return (directory / SAFETENSORS).is_file() and not has_checkpoints


def require_array_path(path: Path) -> None:
    """Checks that arrays that are saved in a directory can be read again.

    Orbax takes the absolute path for a pattern of file names, and TensorStore writes to
    a path with slashes in place of backslashes.

    Raises:
      OutputError: the absolute path has a character with such a meaning.
    """
    absolute = {str(path.absolute()), os.path.realpath(path)}
    if wrong := sorted(set("*?[\\") & set("".join(absolute))):
        raise OutputError(
            f"{path.absolute()} must have none of * ? [ \\ in its path, as arrays are "
            f"saved there, and has {' '.join(wrong)}. Choose another directory, or "
            "rename the one with that name."
        )


class StepDirs:
    """Lists, renames and removes the checkpoint directories of one directory.

    Args:
      directory: has one subdirectory per step; it need not exist.
    """

    def __init__(self, directory: Path):
        self.directory = directory.absolute()

    def path(self, step: int) -> Path:
        """Returns the directory of a step."""
        return self.directory / str(step)

    def steps(self) -> list[int]:
        """Lists the steps that are completely written, oldest first."""
        return sorted(int(path.name) for path in self._numbered() if _is_step(path))

    def stray_dirs(self) -> list[str]:
        """Lists quarantined checkpoints, and numbered entries without a checkpoint."""
        quarantined = self.directory.glob("corrupt-*")
        return sorted(
            path.name
            for path in [*self._numbered(), *quarantined]
            if not (_NUMBER.fullmatch(path.name) and _is_step(path))
        )

    def quarantine(self, step: int) -> Path:
        """Renames a checkpoint to `corrupt-<step>` and returns the new path."""
        return self._rename(step, "corrupt")

    def clear_step_dir(self, step: int) -> Path | None:
        """Frees the name of a step that is to be saved, by renaming what has it.

        Returns:
          The new path of a checkpoint, `replaced-<step>`; None if there was none.
          Anything else is kept as `stray-<step>`.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.path(step)
        if _is_step(path):
            return self._rename(step, "replaced")
        if os.path.lexists(path):
            self._rename(step, "stray")
        return None

    def remove(self, path: Path) -> None:
        """Renames a directory and then removes it, so that no partial step remains."""
        doomed = path.with_name(f"removed-{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        with contextlib.suppress(OSError):
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)

    def remove_partial(self) -> None:
        """Removes the files of incomplete saves, which take disk space."""
        for path in [*self.directory.glob(_PARTIAL)]:
            shutil.rmtree(path, ignore_errors=True)

    def recover(self) -> None:
        """Cleans up after a crash; to be called only with the workdir locked."""
        self.remove_partial()
        for path in sorted(self.directory.glob("re*-*")):
            if _REMOVED.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)
            if not (found := _REPLACED.fullmatch(path.name)):
                continue
            number, again = int(found[1]), found[2]
            if not again and not _is_step(self.path(number)):
                self.clear_step_dir(number)
                path.rename(self.path(number))
            else:
                self.remove(path)

    def _numbered(self) -> list[Path]:
        return [p for p in self.directory.glob("*") if _NUMBER.fullmatch(p.name)]

    def _rename(self, step: int, prefix: str) -> Path:
        """Renames a step to the first free name of that prefix."""
        marks = chain([""], (f"-{number}" for number in count(2)))
        names = (f"{prefix}-{step}{mark}" for mark in marks)
        return self.path(step).rename(free_path(map(self.directory.joinpath, names)))


def _is_step(path: Path) -> bool:
    return any((path / part).exists() for part in _PARTS)
