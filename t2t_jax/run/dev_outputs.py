"""The translations and samples of each evaluation; needs no JAX.

``dev_outputs/source.txt reference.txt <step>.txt``: plain text, a sentence a line, so
that other programs can score them too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from t2t_jax.errors import UserError
from t2t_jax.files import atomic_write, read_limited
from t2t_jax.training.progress_and_patience import best_by
from t2t_jax.training.reporting.metrics_writer import read_metrics

Lines: TypeAlias = Sequence[str]

FOLDER = "dev_outputs"
SOURCE, REFERENCE = "source.txt", "reference.txt"

_STEP = re.compile(r"(0|[1-9][0-9]*)\.txt")
# About 2,000,000 lines; development sets have thousands.
_MAX_BYTES = 256 << 20
MAX_FOLDER_BYTES = 256 << 20
"""Of all steps together, such as 600 evaluations of 3,000 sentences."""

_MAX_SAMPLE_BYTES = 4 << 20
# At the end of an empty one an editor may have cut off the blanks.
_SAMPLE = re.compile(
    r"^  source(?: {7}(.*))?\n  reference(?: {4}(.*))?\n  translation(?:  (.*))?$",
    re.MULTILINE,
)


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
        self, step: int, hypotheses: Lines, sources: Lines, references: Lines
    ) -> None:
        """Writes the translations of a step, and the set that they are of.

        Raises:
          OSError: a file cannot be written.
        """
        self.folder.mkdir(exist_ok=True)
        files = {SOURCE: sources, REFERENCE: references, f"{step}.txt": hypotheses}
        for name, lines in files.items():
            text = "".join(f"{line}\n" for line in lines)
            atomic_write(self.folder / name, text)
        self._prune()

    def _prune(self) -> None:
        """Removes the oldest translations until the limit is kept.

        Those of the newest step stay, and those of the best one, which reports score.
        """
        paths = {step: self.folder / f"{step}.txt" for step in steps_in(self.folder)}
        excess = sum(path.stat().st_size for path in paths.values()) - MAX_FOLDER_BYTES
        if excess <= 0:
            return
        records = read_metrics(self.folder.parent / "metrics.jsonl")
        scored = [record for record in records if "bleu" in record]
        best = max(scored, key=best_by)["step"] if scored else None
        for step in list(paths)[:-1]:
            if excess > 0 and step != best:
                excess -= paths[step].stat().st_size
                paths[step].unlink()

    def read(self, step: int) -> DevOutput | None:
        """Reads the translations of a step.

        Returns:
          None if a file is missing, or does not have a line for each source.

        Raises:
          DataError: a file is too large, or is not a regular file.
        """
        names = (SOURCE, REFERENCE, f"{step}.txt")
        with suppress(OSError):
            found = DevOutput(step, *map(self._lines, names))
            if len(found.sources) == len(found.references) == len(found.hypotheses):
                return found
        return None

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        content = read_limited(path, max_bytes=_MAX_BYTES, advice="Remove it.")
        return content.decode(errors="replace").split("\n")[:-1]


def steps_in(folder: Path) -> list[int]:
    """Lists the steps of which a folder has a file, in order."""
    names = (_STEP.fullmatch(path.name) for path in folder.glob("*.txt"))
    return sorted(int(name[1]) for name in names if name)


def read_step_samples(folder: Path, step: int) -> list[tuple[str, str, str]]:
    """Reads what `evaluation.evaluator.Evaluator.samples` has formatted.

    Returns:
      Source, reference and translation of each sample; anything else is left out.
    """
    path = folder / f"{step}.txt"
    with suppress(OSError, UserError):
        content = read_limited(path, max_bytes=_MAX_SAMPLE_BYTES, advice="")
        return _SAMPLE.findall(content.decode(errors="replace"))
    return []
