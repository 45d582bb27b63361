"""Timestamps of log lines and records: UTC, and seconds since the start."""

from __future__ import annotations

import time

from t2t_jax.data.files.progress_bar import format_clock


class Timestamps:
    """The clock of a command, started at construction."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def elapsed(self) -> float:
        """Returns the seconds since the start, by a monotonic clock."""
        return time.monotonic() - self._began

    def fields(self) -> dict[str, str | float]:
        """Returns the time fields of a record of metrics.jsonl."""
        return {"time": utc("%Y-%m-%dT%H:%M:%SZ"), "elapsed": round(self.elapsed(), 3)}

    def prefix(self, *, date: bool) -> str:
        """Returns the prefix of a log line, with or without the date."""
        now = utc("%Y-%m-%d %H:%M:%SZ" if date else "%H:%M:%SZ")
        return f"[{now} +{format_clock(self.elapsed())}]"


def utc(form: str) -> str:
    """Formats the current time in UTC; `form` is that of `time.strftime`."""
    return time.strftime(form, time.gmtime())


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
