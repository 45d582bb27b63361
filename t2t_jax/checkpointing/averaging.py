"""The mean of several checkpoints' parameters.

Paper: §6.1: the last 5 checkpoints of a base model, the last 20 of a big one.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np

from t2t_jax.checkpointing.config import CheckpointConfig
from t2t_jax.errors import DataError
from t2t_jax.types import Params

TOLERANCE = 0.2
"""Largest relative deviation of a gap from the median gap."""

_UNITS = ("minutes", "steps", "epochs")


class CheckpointInfo(NamedTuple):
    """The position of a checkpoint in its run.

    Attributes:
      minutes: training time, without evaluation and saving.
      kinds: why it was saved: periodic, best, final, stopped.
    """

    steps: int
    minutes: float
    epochs: int
    kinds: tuple[str, ...]

    @property
    def is_periodic(self) -> bool:
        """Whether it was saved at an interval; only such checkpoints are averaged."""
        return "periodic" in self.kinds


class Spacing(NamedTuple):
    """The gaps between consecutive checkpoints, in one unit."""

    unit: str
    gaps: tuple[float, ...]

    @property
    def is_even(self) -> bool:
        """Whether each gap is within `TOLERANCE` of the median gap; true without gaps.

        Example:
          >>> Spacing("steps", (100, 100, 120)).is_even
          True
          >>> Spacing("steps", (100, 100, 121)).is_even
          False
        """
        median = statistics.median(self.gaps or [1])
        deviations = [abs(gap - median) for gap in self.gaps]
        return median > 0 and max(deviations, default=0) <= TOLERANCE * median

    def __str__(self) -> str:
        gaps = (f"{x:.4g}" if isinstance(x, float) else str(x) for x in self.gaps)
        return f"{', '.join(gaps)} {self.unit}"


class Selection(NamedTuple):
    """Checkpoints selected for an average, oldest first.

    Attributes:
      faults: clauses for the error message; empty if the selection is valid.
    """

    steps: tuple[int, ...]
    spacing: Spacing
    faults: tuple[str, ...] = ()

    def check_even(self) -> None:
        """Raises a DataError unless the checkpoints are periodic and evenly spaced."""
        if self.faults:
            raise DataError(
                "Checkpoints to be averaged must be periodic, each given once, and the "
                f"gaps within {100 * TOLERANCE:g} % of the median gap (section 6.1).\n"
                f"Of {', '.join(map(str, self.steps))}: {'; '.join(self.faults)}.\n"
                "Ask for fewer with --last, average these anyway with --force, or pass "
                "other steps to --mode=average with --average_steps."
            )


def info_from_meta(meta: Mapping[str, Any]) -> CheckpointInfo:
    """Reads the position of a checkpoint from its JSON object."""
    made, kinds = meta["progress"], tuple(meta["kinds"])
    return CheckpointInfo(made["step"], made["minutes"], made["position"][0], kinds)


def spacing_units(config: CheckpointConfig) -> tuple[str, ...]:
    """Returns the units of the enabled intervals; steps if none is enabled.

    Example:
      >>> spacing_units(CheckpointConfig(every_minutes=10, every_epochs=1))
      ('minutes', 'epochs')
    """
    on = tuple(unit for unit in _UNITS if getattr(config, f"every_{unit}"))
    return on or ("steps",)


def select(infos: Sequence[CheckpointInfo], units: Sequence[str]) -> Selection:
    """Sorts the checkpoints of an average and checks them.

    Args:
      infos: at least one, in any order. One that is given twice has twice the weight,
        and is a fault.
      units: the gaps must be even in one of them.

    Returns:
      The steps, with the first unit in which they are evenly spaced; if there is none,
      with the first unit and a fault.

    Paper: §6.1.

    Example:
      >>> infos = [CheckpointInfo(n, n / 3, 0, ("periodic",)) for n in (30, 10, 20)]
      >>> select(infos, ["steps"])
      Selection(steps=(10, 20, 30), spacing=Spacing(unit='steps', gaps=(10, 10)), ...)
    """
    infos = sorted(infos)
    steps, spacings = tuple(info.steps for info in infos), []
    for unit in units:
        places = [getattr(info, unit) for info in infos]
        spacings.append(Spacing(unit, tuple(b - a for a, b in pairwise(places))))
    even = [spacing for spacing in spacings if spacing.is_even]
    apart = " or ".join(map(str, spacings))
    faults = [] if even else [f"the gaps are {apart}, which is not even"]
    counts = Counter(steps).items()
    faults += [f"{step} comes {count} times" for step, count in counts if count > 1]
    faults += [
        f"{info.steps} is not periodic but {' and '.join(info.kinds)}"
        for info in dict.fromkeys(infos)
        if not info.is_periodic
    ]
    return Selection(steps, (even or spacings)[0], tuple(faults))


def sliding_windows(
    infos: Sequence[CheckpointInfo], units: Sequence[str], *, last: int
) -> list[Selection]:
    """Selects every `last` consecutive periodic checkpoints, oldest first.

    Example:
      >>> infos = [CheckpointInfo(n, 0.0, 0, ("periodic",)) for n in (5, 10, 15, 20)]
      >>> [window.steps for window in sliding_windows(infos, ["steps"], last=3)]
      [(5, 10, 15), (10, 15, 20)]
    """
    periodic = sorted(info for info in infos if info.is_periodic)
    ends = range(last, len(periodic) + 1)
    return [select(periodic[end - last : end], units) for end in ends]


def average(checkpoints: Iterable[Params]) -> Params:
    """Averages parameter trees, one in memory at a time.

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
            "An average needs at least one checkpoint, and got none. "
            "Pass some with --average_steps, or keep more with checkpoint.keep."
        )
    return jax.tree.map(lambda t, x: (t / count).astype(x.dtype), total, last)
