"""The mean of several checkpoints' parameters.

Paper: §6.1: the last 5 checkpoints of a base model, the last 20 of a big one.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np

from t2t_jax.checkpointing.config import CheckpointConfig
from t2t_jax.errors import DataError
from t2t_jax.types import Params

TOLERANCE = 0.2
"""How far a gap may be from the median gap, as a share of it."""

_UNITS = ("minutes", "steps", "epochs")


class CheckpointInfo(NamedTuple):
    """Where a checkpoint stands in its run.

    Attributes:
      steps: optimizer steps made.
      minutes: of training, evaluation and saving left out.
      epochs: passes over the corpus that were completed.
      kinds: why it was saved: periodic, best, final, stopped.
    """

    steps: int
    minutes: float
    epochs: int
    kinds: tuple[str, ...]

    @property
    def is_periodic(self) -> bool:
        """Whether an interval was over; only such checkpoints are averaged."""
        return "periodic" in self.kinds


class Spacing(NamedTuple):
    """The gaps between checkpoints that follow one another, in one unit.

    Attributes:
      unit: `minutes`, `steps` or `epochs`.
      gaps: one fewer than there are checkpoints.
    """

    unit: str
    gaps: tuple[float, ...]

    @property
    def is_even(self) -> bool:
        """Whether each gap is within `TOLERANCE` of the median gap; none always is.

        Example:
          >>> Spacing("steps", (100, 100, 120)).is_even
          True
          >>> Spacing("steps", (100, 100, 121)).is_even
          False
        """
        if not self.gaps:
            return True
        median = statistics.median(self.gaps)
        return median > 0 and all(
            abs(gap - median) <= TOLERANCE * median for gap in self.gaps
        )

    def __str__(self) -> str:
        gaps = ", ".join(
            str(gap) if isinstance(gap, int) else f"{gap:.4g}" for gap in self.gaps
        )
        return f"{gaps} {self.unit}"


class Selection(NamedTuple):
    """Checkpoints chosen for an average.

    Attributes:
      steps: of the checkpoints, oldest first.
      spacing: how far apart they lie, in the unit in which they are judged.
      faults: what is wrong with them; nothing, as a rule.
    """

    steps: tuple[int, ...]
    spacing: Spacing
    faults: tuple[str, ...] = ()

    def check_even(self) -> None:
        """Checks that the mean of these checkpoints is one as the paper makes it.

        Raises:
          DataError: it is not.
        """
        if self.faults:
            raise DataError(
                "Checkpoints to be averaged must be periodic, each named once, and the "
                f"gaps within {100 * TOLERANCE:g} % of the median gap (section 6.1).\n"
                f"Of {', '.join(map(str, self.steps))}: {'; '.join(self.faults)}.\n"
                "Name other steps with --average_steps, take fewer with --last, or "
                "average these all the same with --force."
            )


def info_from_meta(meta: Mapping[str, Any]) -> CheckpointInfo:
    """Reads where a checkpoint stands from the JSON that a run saves with it.

    Example:
      >>> progress = {"step": 70, "minutes": 1.5, "position": [2, 0]}
      >>> info_from_meta({"kinds": ["periodic"], "progress": progress})
      Mark(steps=70, minutes=1.5, epochs=2, kinds=('periodic',))
    """
    progress = meta["progress"]
    return CheckpointInfo(
        steps=progress["step"],
        minutes=progress["minutes"],
        epochs=progress["position"][0],
        kinds=tuple(meta["kinds"]),
    )


def spacing_units(config: CheckpointConfig) -> tuple[str, ...]:
    """Returns the units of the intervals that are on; steps where none is.

    Example:
      >>> spacing_units(CheckpointConfig(every_minutes=10, every_epochs=1))
      ('minutes', 'epochs')
    """
    on = tuple(unit for unit in _UNITS if getattr(config, f"every_{unit}"))
    return on or ("steps",)


def select(marks: Sequence[CheckpointInfo], units: Sequence[str]) -> Selection:
    """Judges checkpoints that are to be averaged.

    Args:
      marks: the checkpoints, at least one, in any order; one that comes twice weighs
        twice in the mean, and is a fault.
      units: in which they may be evenly spaced; one of them is enough.

    Returns:
      The checkpoints in order, with the first unit in which they are evenly spaced;
      where there is none, with the first of all and the fault.

    Paper: §6.1.

    Example:
      >>> marks = [CheckpointInfo(n, n / 3, 0, ("periodic",)) for n in (30, 10, 20)]
      >>> select(marks, ["steps"])
      Selection(steps=(10, 20, 30), spacing=Spacing(unit='steps', gaps=(10, 10)), ...)
    """
    marks = sorted(marks)
    steps = tuple(mark.steps for mark in marks)
    spacings = [_spacing(marks, unit) for unit in units]
    even = [spacing for spacing in spacings if spacing.is_even]
    faults = []
    if not even:
        apart = " or ".join(map(str, spacings))
        faults.append(f"the gaps are {apart}, which is not even")
    faults += [
        f"{step} comes {steps.count(step)} times"
        for step in dict.fromkeys(steps)
        if steps.count(step) > 1
    ]
    faults += [
        f"{mark.steps} is not periodic but {' and '.join(mark.kinds)}"
        for mark in dict.fromkeys(marks)
        if not mark.is_periodic
    ]
    return Selection(steps, (even or spacings)[0], tuple(faults))


def sliding_windows(
    marks: Sequence[CheckpointInfo], units: Sequence[str], *, last: int
) -> list[Selection]:
    """Judges every `last` periodic checkpoints that follow one another.

    Args:
      marks: the checkpoints of a run, in any order.

    Returns:
      The windows, oldest first; none where there are too few checkpoints.

    Example:
      >>> marks = [CheckpointInfo(n, 0.0, 0, ("periodic",)) for n in (5, 10, 15, 20)]
      >>> [window.steps for window in windows(marks, ["steps"], last=3)]
      [(5, 10, 15), (10, 15, 20)]
    """
    periodic = sorted(mark for mark in marks if mark.is_periodic)
    return [
        select(periodic[end - last : end], units)
        for end in range(last, len(periodic) + 1)
    ]


def _spacing(marks: Sequence[CheckpointInfo], unit: str) -> Spacing:
    places = [getattr(mark, unit) for mark in marks]
    gaps = tuple(after - before for before, after in pairwise(places))
    return Spacing(unit, gaps)


def average(checkpoints: Iterable[Params]) -> Params:
    """Averages parameter trees, one in memory at a time.

    Args:
      checkpoints: trees of equal structure and shapes; at least one.

    Returns:
      The plain mean of each leaf, summed in float64, in the leaf's own dtype.

    Raises:
      ValueError: there is no checkpoint.

    Paper: §6.1.

    Example:
      >>> average([{"a": np.zeros(2)}, {"a": np.ones(2)}])
      {'a': array([0.5, 0.5])}
    """
    total: Params = None
    count = 0
    for params in checkpoints:
        wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
        total = wide if total is None else jax.tree.map(np.add, total, wide)
        count, last = count + 1, params
    if not count:
        raise ValueError(
            "An average needs at least one checkpoint, and none came. "
            "Name some with --average_steps, or keep more with checkpoint.keep."
        )
    return jax.tree.map(lambda t, x: (t / count).astype(x.dtype), total, last)
