"""Sample translations of a run through time, from `samples/<step>.txt`."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NamedTuple

from t2t_jax.errors import UserError
from t2t_jax.files import read_limited
from t2t_jax.run.workdir import Workdir

MAX_STEPS = 60
"""Evaluations of which a page shows the samples."""

_MAX_SENTENCES = 20
_MAX_BYTES = 4 << 20
_MAX_LETTERS = 1_000
_STEP = re.compile(r"(0|[1-9][0-9]*)\.txt")
_NAMES = ("source", "reference", "translation")


class Sample(NamedTuple):
    """A development sentence, its reference, and a translation."""

    source: str
    reference: str
    translation: str


def parse(text: str) -> list[Sample]:
    """Parses what `evaluation.evaluator.Evaluator.samples` has formatted.

    Anything else is left out.

    Example:
      >>> lines = ["  source       A b.", "  reference    C.", "  translation  D."]
      >>> parse(chr(10).join(lines))
      [Sample(source='A b.', reference='C.', translation='D.')]
    """
    samples: list[Sample] = []
    fields: list[str] = []
    for line in text.split("\n"):
        name = _NAMES[len(fields)]
        prefix = f"  {name:<13}"
        if line.startswith(prefix) or line == prefix.rstrip():
            fields.append(line[len(prefix) :])
        else:
            fields = []
        if len(fields) == len(_NAMES):
            samples.append(Sample(*fields))
            fields = []
    return samples


def read_samples(workdir: Workdir, *, keep: Collection[int] = ()) -> dict[str, Any]:
    """Reads the samples of a run, of at most `MAX_STEPS` evaluations.

    Args:
      keep: steps that are not left out, such as that of the best evaluation.

    Returns:
      JSON values: `steps`; `sentences`, each with source, reference and its
      translations, one for each step (None where that step has none); `left_out`, the
      number of evaluations that are not shown.
    """
    steps = _steps(workdir)
    shown = _spread(steps, keep)
    sentences: dict[tuple[str, str], dict[int, str]] = {}
    for step in shown:
        for sample in _read(workdir, step)[:_MAX_SENTENCES]:
            pair = (_cut(sample.source), _cut(sample.reference))
            sentences.setdefault(pair, {})[step] = _cut(sample.translation)
    return {
        "steps": shown,
        "sentences": [
            {
                "source": source,
                "reference": reference,
                "translations": [by_step.get(step) for step in shown],
            }
            for (source, reference), by_step in sentences.items()
        ][:_MAX_SENTENCES],
        "left_out": len(steps) - len(shown),
    }


def _steps(workdir: Workdir) -> list[int]:
    folder = workdir.path / "samples"
    if not folder.is_dir():
        return []
    names = (_STEP.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(name[1]) for name in names if name)


def _spread(steps: list[int], keep: Collection[int]) -> list[int]:
    """Selects evenly spread steps, the first, the last and those to keep."""
    if len(steps) <= MAX_STEPS:
        return steps
    kept = set(keep) & set(steps)
    room = max(2, MAX_STEPS - len(kept))
    last = len(steps) - 1
    kept |= {steps[round(n * last / (room - 1))] for n in range(room)}
    return sorted(kept)


def _read(workdir: Workdir, step: int) -> list[Sample]:
    path = workdir.path / "samples" / f"{step}.txt"
    with suppress(OSError, UserError):
        content = read_limited(path, max_bytes=_MAX_BYTES, advice="")
        return parse(content.decode(errors="replace"))
    return []


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]}…"
