"""Timestamps of log lines and records: UTC, and seconds since the start."""

from __future__ import annotations

import time

from t2t_jax.quantities import format_clock


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
