"""The translations of the development set at each evaluation; needs no JAX.

``dev_outputs/source.txt reference.txt <step>.txt``: plain text, a sentence a line, so
that other programs can score them too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_jax.files import atomic_write, read_limited

FOLDER = "dev_outputs"

_SOURCE, _REFERENCE = "source.txt", "reference.txt"
_STEP = re.compile(r"(0|[1-9][0-9]*)\.txt")
# About 2,000,000 lines; development sets have thousands.
_MAX_BYTES = 256 << 20
_ADVICE = "Remove it."


class DevOutput(NamedTuple):
    """Translations of the development set, line by line."""

    step: int
    sources: list[str]
    references: list[str]
    hypotheses: list[str]


class DevOutputs:
    """Writes and reads the development translations of a run.

    Args:
      workdir: of the run; the folder in it is created by `write`.
    """

    def __init__(self, workdir: Path):
        self.folder = workdir / FOLDER

    def write(
        self,
        step: int,
        hypotheses: Sequence[str],
        *,
        sources: Sequence[str],
        references: Sequence[str],
    ) -> None:
        """Writes the translations of a step, and the set if it has changed.

        Raises:
          OSError: a file cannot be written.
        """
        self.folder.mkdir(exist_ok=True)
        for name, lines in ((_SOURCE, sources), (_REFERENCE, references)):
            path, text = self.folder / name, _text(lines)
            size = len(text.encode(errors="backslashreplace"))
            if not path.is_file() or path.stat().st_size != size:
                atomic_write(path, text)
        atomic_write(self.folder / f"{step}.txt", _text(hypotheses))

    def steps(self) -> list[int]:
        """Lists the steps with translations, in order."""
        if not self.folder.is_dir():
            return []
        names = (_STEP.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def read(self, step: int) -> DevOutput | None:
        """Reads the translations of a step.

        Returns:
          None if a file is missing, or does not have a line for each source.

        Raises:
          DataError: a file is too large, or is not a regular file.
        """
        try:
            sources, references, hypotheses = (
                self._lines(name) for name in (_SOURCE, _REFERENCE, f"{step}.txt")
            )
        except OSError:
            return None
        if not len(sources) == len(references) == len(hypotheses):
            return None
        return DevOutput(step, sources, references, hypotheses)

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        content = read_limited(path, max_bytes=_MAX_BYTES, advice=_ADVICE)
        return content.decode(errors="replace").split("\n")[:-1]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
