"""The folders of a run's checkpoints, as they lie on the disk.

A checkpoint is a folder with the number of its step for a name. It gets that name when
all of it is written, so what a crash leaves is never taken for one, and neither is an
empty folder or a file of such a name. Neither JAX nor Orbax is needed here.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path
from typing import Any

SAFETENSORS = "model.safetensors"
"""The file that holds a model's parameters where there are no checkpoints."""


def is_safetensors_dir(directory: Path) -> bool:
    """Tells whether parameters are in one file, and in no checkpoints.

    Args:
      directory: of a run or a model.

    Example:
      >>> is_safetensors_dir(Path("nowhere"))
      False
    """
    return (directory / SAFETENSORS).is_file() and not (
        directory / "checkpoints"
    ).is_dir()


Meta = dict[str, Any]

_NUMBER = re.compile(r"0|[1-9][0-9]*")
# Orbax writes all three; where only some are left the checkpoint is a damaged one.
_PARTS = ("params", "meta", "_CHECKPOINT_METADATA")
_HALF_WRITTEN = "*.orbax-checkpoint-tmp*"


class StepDirs:
    """Lists, names, sets aside and removes the checkpoints of one directory.

    Args:
      directory: holds one folder a step; it need not be there.
    """

    def __init__(self, directory: Path):
        self.directory = directory

    def path(self, step: int) -> Path:
        """Names the folder of a step."""
        return self.directory / str(step)

    def steps(self) -> list[int]:
        """Lists the steps that have been completely written, oldest first."""
        return sorted(int(path.name) for path in self._numbered() if _is_step(path))

    def stray_dirs(self) -> list[str]:
        """Lists what has a checkpoint's name and is none, or was set aside as one."""
        aside = [] if not self.directory.is_dir() else self.directory.glob("corrupt-*")
        return sorted(
            path.name
            for path in [*self._numbered(), *aside]
            if not (_NUMBER.fullmatch(path.name) and _is_step(path))
        )

    def other_steps(self, step: int) -> list[int]:
        """Lists all steps but this one."""
        return [other for other in self.steps() if other != step]

    def quarantine(self, step: int) -> Path:
        """Renames a checkpoint to `corrupt-<step>`, and returns where it is now."""
        return self._aside(step, "corrupt")

    def clear_step_dir(self, step: int, *, replace: bool = False) -> Path | None:
        """Frees the name of a step that is to be saved.

        What is no checkpoint is renamed to `stray-<step>`, and stays.

        Args:
          replace: whether a checkpoint of that step gives way too.

        Returns:
          Where the checkpoint that gave way is now; None if there was none.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.path(step)
        if _is_step(path):
            return self._aside(step, "replaced") if replace else None
        if path.is_symlink() or path.exists():
            self._aside(step, "stray")
        return None

    def remove(self, path: Path) -> None:
        """Removes a folder of this directory; one that is half removed is no step."""
        doomed = path.with_name(f"removed-{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        with contextlib.suppress(OSError):
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)

    def remove_partial(self) -> None:
        """Removes what saves that did not end have left, for it holds space."""
        if not self.directory.is_dir():
            return
        for left in [*self.directory.glob(_HALF_WRITTEN)]:
            shutil.rmtree(left, ignore_errors=True)

    def recover(self) -> None:
        """Puts in order what a crash has left; only who trains here may do so."""
        if not self.directory.is_dir():
            return
        self.remove_partial()
        for path in sorted(self.directory.glob("removed-*")):
            shutil.rmtree(path, ignore_errors=True)
        for path in sorted(self.directory.glob("replaced-*")):
            number = path.name.removeprefix("replaced-")
            if _NUMBER.fullmatch(number) and not _is_step(self.path(int(number))):
                self.clear_step_dir(int(number))
                path.rename(self.path(int(number)))
            else:
                self.remove(path)

    def _numbered(self) -> list[Path]:
        if not self.directory.is_dir():
            return []
        return [
            path for path in self.directory.iterdir() if _NUMBER.fullmatch(path.name)
        ]

    def _aside(self, step: int, kind: str) -> Path:
        target, number = self.directory / f"{kind}-{step}", 1
        while target.is_symlink() or target.exists():
            number += 1
            target = self.directory / f"{kind}-{step}-{number}"
        return self.path(step).rename(target)


def _is_step(path: Path) -> bool:
    return any((path / part).exists() for part in _PARTS)
