"""Tells people how far work on much text has come."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, TextIO, TypeAlias

Say: TypeAlias = Callable[[str], None]

# At first programs are compiled, and what that takes is no pace to foretell an end by.
_FORETELLING_SHARE = 10
_FORETELLING_UNITS = 10_000


class ProgressLabels(NamedTuple):
    """What is done to what.

    Attributes:
      done: a participle, such as "encoded".
      units: what is counted, such as "pairs".
    """

    done: str
    units: str


ENCODING = ProgressLabels("encoded", "pairs")
"""The preparation of text."""


class ProgressBar:
    """Shows what is done, its rate and the time left.

    On a terminal that is a bar, elsewhere a line at times. To be used in a `with`
    statement while there is something to count.

    Args:
      say: writes a line for people; None keeps silent about everything.
      every_seconds: between two lines where `stream` is not a terminal.
      stream: where the bar goes; None means stderr.
      work: what is done to what.
      patience: seconds before there is a bar, for what may be done at once.
    """

    def __init__(
        self,
        say: Say | None = None,
        *,
        every_seconds: float = 10.0,
        stream: TextIO | None = None,
        work: ProgressLabels = ENCODING,
        patience: float = 0.0,
    ):
        self._work, self._patience = work, patience
        self._say, self._every_seconds = say, every_seconds
        self._stream = stream or sys.stderr
        self._bar: Any = None
        self._total: int | None = None
        self._is_exact = True
        self._done = self._first = 0
        self._began = self._shown = 0.0

    @property
    def is_enabled(self) -> bool:
        """Whether anybody is told, so that it is worth finding out more."""
        return self._say is not None

    def log(self, text: str) -> None:
        """Writes a line; there is no bar at that time."""
        if self._say is not None:
            self._say(text)

    @contextlib.contextmanager
    def heartbeat(self, what: str) -> Iterator[None]:
        """Says at times that something goes on whose end cannot be foretold.

        Args:
          what: is done inside, such as "Learning".
        """
        if self._say is None:
            yield
            return
        began, ended = time.monotonic(), threading.Event()

        def tell() -> None:
            while not ended.wait(self._every_seconds):
                self.log(f"{what}: {_clock(time.monotonic() - began)} so far …")

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield
        finally:
            ended.set()
            teller.join()

    def start(
        self, *, total: int | None, is_exact: bool = True, done: int = 0
    ) -> ProgressBar:
        """Begins to count.

        Args:
          total: units in all; None where that is not known.
          is_exact: whether they were counted, and not foretold.
          done: units that are done already, and took none of the time.
        """
        self._total, self._done, self._first = total, done, done
        self._is_exact = is_exact
        self._began = self._shown = time.monotonic()
        self._open_bar()
        return self

    def _open_bar(self) -> None:
        waited = time.monotonic() - self._began
        if self._say is None or not self._stream.isatty() or waited < self._patience:
            return
        title = self._work.done if self._is_exact else f"{self._work.done}, of about"
        self._bar = _bar(title, self._total, self._done, self._stream)

    def advance(self, number: int) -> None:
        """Counts units that are done."""
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
                    foretells=self._has_a_pace(),
                )
            )

    def _has_a_pace(self) -> bool:
        done = self._done - self._first
        share = ((self._total or 0) - self._first) // _FORETELLING_SHARE
        return done >= min(share, _FORETELLING_UNITS)

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
    foretells: bool = True,
) -> str:
    """Words a state of progress.

    Args:
      total: units in all; None where that is not known.
      is_exact: whether the total was counted, and not foretold.
      foretells: whether the rate is good enough to say when all is done.

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
    end = f"  ETA {left}" if foretells else ""
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
