"""Formats durations and bytes for people, and counts processors, in one way for all."""

from __future__ import annotations

import os


def format_clock(seconds: float) -> str:
    """Formats a duration as h:mm:ss.

    Example:
      >>> format_clock(3671)
      '1:01:11'
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}"


def format_duration(seconds: float) -> str:
    """Formats a duration for humans, with about two digits.

    Example:
      >>> [format_duration(seconds) for seconds in (42, 340, 9_500, 300_000)]
      ['42 s', '6 min', '2 h 40 min', '3.5 days']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes >= 48 * 60:
        return f"{minutes / 60 / 24:.1f} days"
    tens = round(minutes, -1) if minutes > 120 else minutes
    hours, minutes = divmod(tens, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def format_bytes(number: float) -> str:
    """Formats a number of bytes for humans.

    Example:
      >>> [format_bytes(number) for number in (512, 2_000_000, 7.31e10)]
      ['512 B', '2.0 MB', '73.1 GB']
    """
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f} B"


def usable_processors() -> int:
    """Counts the processors that this process may use: fewer than all under Slurm."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1
