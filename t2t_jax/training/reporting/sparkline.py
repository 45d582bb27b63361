"""Plots a few numbers as one line of text, for a terminal that can show it."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from typing import TextIO

_BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 16
"""Most characters of a sparkline."""


def sparkline(values: Sequence[float], *, width: int = WIDTH) -> str:
    """Plots values as blocks of eight heights, the lowest to the highest.

    Args:
      values: in order; those that are not finite are left out.
      width: most characters; more values are averaged in groups of about equal size.

    Example:
      >>> sparkline([1, 2, 3, 5, 8]), sparkline([7, 7]), sparkline([math.nan])
      ('▁▂▃▅█', '▁▁', '')
      >>> sparkline(range(1000), width=4)
      '▁▃▆█'
    """
    kept = [value for value in values if math.isfinite(value)]
    if len(kept) > width:
        bounds = [round(i * len(kept) / width) for i in range(width + 1)]
        groups = itertools.pairwise(bounds)
        kept = [math.fsum(kept[a:b]) / (b - a) for a, b in groups]
    if not kept:
        return ""
    low, span = min(kept), max(kept) - min(kept)
    top = len(_BLOCKS) - 1
    return "".join(
        _BLOCKS[round((value - low) / span * top) if span else 0] for value in kept
    )


class Thinned:
    """A series of bounded length: the means of ever more consecutive values.

    Example:
      >>> series = Thinned(capacity=4)
      >>> for value in range(1, 9):
      ...     series.add(value)
      >>> series.values()
      [1.5, 3.5, 5.5, 7.5]
    """

    def __init__(self, capacity: int = 8 * WIDTH):
        self._capacity, self._size = capacity, 1
        self._means: list[float] = []
        self._open: list[float] = []

    def add(self, value: float) -> None:
        """Appends a value; one that is not finite is left out."""
        if not math.isfinite(value):
            return
        self._open.append(value)
        if len(self._open) < self._size:
            return
        self._means.append(math.fsum(self._open) / self._size)
        self._open = []
        if len(self._means) > self._capacity:
            # An odd one remains open.
            pairs = zip(self._means[::2], self._means[1::2], strict=False)
            rest = self._means[len(self._means) // 2 * 2 :]
            self._open = [one for one in rest for _ in range(self._size)]
            self._means = [(first + second) / 2 for first, second in pairs]
            self._size *= 2

    def values(self) -> list[float]:
        """Returns the means, the last one of fewer values."""
        rest = [math.fsum(self._open) / len(self._open)] if self._open else []
        return self._means + rest


def shows_sparklines(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether a stream is a terminal that has the blocks of a sparkline.

    Not if TERM is dumb, or NO_COLOR is set, as where plain output is wanted.
    """
    is_plain = environ.get("TERM") == "dumb" or bool(environ.get("NO_COLOR"))
    if is_plain or not stream.isatty():
        return False
    try:
        _BLOCKS.encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
