"""Progress of long text processing: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, TextIO, TypeAlias

Log: TypeAlias = Callable[[str], None]

# The first units include compilation, so their rate gives no usable ETA.
_ETA_SHARE = 10
_ETA_UNITS = 10_000


class ProgressLabels(NamedTuple):
    """Labels of a progress bar.

    Attributes:
      done: a participle, such as "encoded".
      units: what is counted, such as "pairs".
    """

    done: str
    units: str


ENCODING = ProgressLabels("encoded", "pairs")
"""Labels for the encoding of text."""


class ProgressBar:
    """Shows units done, their rate and the time left.

    A bar on a terminal, an occasional line elsewhere. Use in a `with` statement while
    units are counted.

    Args:
      log: writes a line to stderr; None disables all output.
      every_seconds: between two lines if `stream` is not a terminal.
      patience: seconds before the bar appears, for work that may be short.
    """

    def __init__(
        self,
        log: Log | None = None,
        *,
        every_seconds: float = 10.0,
        stream: TextIO | None = None,
        work: ProgressLabels = ENCODING,
        patience: float = 0.0,
    ):
        self._work, self._patience = work, patience
        self._log, self._every_seconds = log, every_seconds
        self._stream = stream or sys.stderr
        self._bar: Any = None
        self._total: int | None = None
        self._is_exact = True
        self._done = self._first = 0
        self._began = self._shown = 0.0

    @property
    def is_enabled(self) -> bool:
        """Whether anything is logged."""
        return self._log is not None

    def log(self, text: str) -> None:
        """Writes a line; not while a bar is shown."""
        if self._log is not None:
            self._log(text)

    @contextlib.contextmanager
    def heartbeat(self, what: str) -> Iterator[None]:
        """Logs the elapsed time of an operation without a known end.

        Args:
          what: the operation, such as "Learning".
        """
        if self._log is None:
            yield
            return
        began, ended = time.monotonic(), threading.Event()

        def beat() -> None:
            while not ended.wait(self._every_seconds):
                self.log(f"{what}: {_clock(time.monotonic() - began)} so far …")

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def start(
        self, *, total: int | None, is_exact: bool = True, done: int = 0
    ) -> ProgressBar:
        """Begins to count.

        Args:
          total: units in all; None if unknown.
          is_exact: whether the total was counted, not estimated.
          done: units done before, excluded from the rate.
        """
        self._total, self._done, self._first = total, done, done
        self._is_exact = is_exact
        self._began = self._shown = time.monotonic()
        self._open_bar()
        return self

    def _open_bar(self) -> None:
        waited = time.monotonic() - self._began
        if self._log is None or not self._stream.isatty() or waited < self._patience:
            return
        title = self._work.done if self._is_exact else f"{self._work.done}, of about"
        self._bar = _bar(title, self._total, self._done, self._stream)

    def advance(self, number: int) -> None:
        """Adds finished units."""
        self._done += number
        if self._bar is None:
            self._open_bar()
        if self._bar is not None:
            rate = f"{self._rate():,.0f} {self._work.units}/s"
            self._bar.update(self._bar.task_ids[0], completed=self._done, rate=rate)
        elif time.monotonic() - self._shown >= self._every_seconds:
            self._shown = time.monotonic()
            self.log(
                progress_line(
                    self._done,
                    self._total,
                    rate=self._rate(),
                    is_exact=self._is_exact,
                    work=self._work,
                    show_eta=self._can_estimate(),
                )
            )

    def _can_estimate(self) -> bool:
        done = self._done - self._first
        share = ((self._total or 0) - self._first) // _ETA_SHARE
        return done >= min(share, _ETA_UNITS)

    def _rate(self) -> float:
        seconds = max(time.monotonic() - self._began, 1e-3)
        return (self._done - self._first) / seconds

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def progress_line(
    done: int,
    total: int | None,
    *,
    rate: float,
    is_exact: bool = True,
    work: ProgressLabels = ENCODING,
    show_eta: bool = True,
) -> str:
    """Formats the state of progress.

    Args:
      total: units in all; None if unknown.
      is_exact: whether the total was counted, not estimated.
      show_eta: whether the rate is reliable enough for an ETA.

    Example:
      >>> progress_line(150_000, 600_000, rate=20_000)
      'encoded 150,000/600,000 pairs (25 %)  20,000 pairs/s  ETA 0:00:22'
      >>> progress_line(150_000, None, rate=20_000)
      'encoded 150,000 pairs  20,000 pairs/s'
      >>> progress_line(150_000, 600_000, rate=20_000, is_exact=False)
      'encoded 150,000/about 600,000 pairs (25 %)  20,000 pairs/s  ETA 0:00:22'
      >>> progress_line(150, 600_000, rate=20, show_eta=False)
      'encoded 150/600,000 pairs (0 %)  20 pairs/s'
      >>> progress_line(1, None, rate=20)
      'encoded 1 pair  20 pairs/s'
    """
    pace = f"{rate:,.0f} {work.units}/s"
    if total is None:
        return f"{work.done} {done:,} {_units(work, done)}  {pace}"
    if not is_exact:
        total = max(total, done)
    left = _clock(max(total - done, 0) / max(rate, 1e-3))
    end = f"  ETA {left}" if show_eta else ""
    about = "" if is_exact else "about "
    return (
        f"{work.done} {done:,}/{about}{total:,} {_units(work, total)} "
        f"({100 * done / max(total, 1):.0f} %)  {pace}{end}"
    )


def _units(work: ProgressLabels, number: int) -> str:
    return work.units.removesuffix("s") if number == 1 else work.units


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}"


def _bar(title: str, total: int | None, done: int, stream: TextIO) -> Any:
    from rich import progress as rich_progress
    from rich.console import Console

    bar = rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.MofNCompleteColumn(),
        rich_progress.BarColumn(bar_width=20),
        rich_progress.TextColumn("{task.fields[rate]}"),
        rich_progress.TextColumn("ETA"),
        rich_progress.TimeRemainingColumn(),
        console=Console(file=stream),
    )
    bar.add_task(title, total=total, completed=done, rate="")
    bar.start()
    return bar
