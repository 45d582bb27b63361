"""How far apart checkpoints lie, and whether their mean is the paper's.

Paper: §6.1 averages "the last 5 checkpoints, which were written at 10-minute
  intervals". Pure functions of what the checkpoints say of themselves.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from t2t_jax.checkpointing.config import CheckpointConfig
from t2t_jax.errors import DataError

TOLERANCE = 0.2
"""How far a gap may be from the median gap, as a share of it."""

_UNITS = ("minutes", "steps", "epochs")


class Mark(NamedTuple):
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

    def require_faultless(self) -> None:
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


def mark_of(meta: Mapping[str, Any]) -> Mark:
    """Reads where a checkpoint stands from the JSON that a run saves with it.

    Example:
      >>> progress = {"step": 70, "minutes": 1.5, "position": [2, 0]}
      >>> mark_of({"kinds": ["periodic"], "progress": progress})
      Mark(steps=70, minutes=1.5, epochs=2, kinds=('periodic',))
    """
    progress = meta["progress"]
    return Mark(
        steps=progress["step"],
        minutes=progress["minutes"],
        epochs=progress["position"][0],
        kinds=tuple(meta["kinds"]),
    )


def units_of(config: CheckpointConfig) -> tuple[str, ...]:
    """Returns the units of the intervals that are on; steps where none is.

    Example:
      >>> units_of(CheckpointConfig(every_minutes=10, every_epochs=1))
      ('minutes', 'epochs')
    """
    on = tuple(unit for unit in _UNITS if getattr(config, f"every_{unit}"))
    return on or ("steps",)


def select(marks: Sequence[Mark], units: Sequence[str]) -> Selection:
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
      >>> marks = [Mark(n, n / 3, 0, ("periodic",)) for n in (30, 10, 20)]
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


def windows(
    marks: Sequence[Mark], units: Sequence[str], *, last: int
) -> list[Selection]:
    """Judges every `last` periodic checkpoints that follow one another.

    Args:
      marks: the checkpoints of a run, in any order.
      units: as in `select`.
      last: checkpoints in a window.

    Returns:
      The windows, oldest first; none where there are too few checkpoints.

    Example:
      >>> marks = [Mark(n, 0.0, 0, ("periodic",)) for n in (5, 10, 15, 20)]
      >>> [window.steps for window in windows(marks, ["steps"], last=3)]
      [(5, 10, 15), (10, 15, 20)]
    """
    periodic = sorted(mark for mark in marks if mark.is_periodic)
    return [
        select(periodic[end - last : end], units)
        for end in range(last, len(periodic) + 1)
    ]


def _spacing(marks: Sequence[Mark], unit: str) -> Spacing:
    places = [getattr(mark, unit) for mark in marks]
    gaps = tuple(after - before for before, after in pairwise(places))
    return Spacing(unit, gaps)
