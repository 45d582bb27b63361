"""Progress of long work: a bar on a terminal, lines at intervals elsewhere."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias

from t2t_jax.quantities import format_clock

if TYPE_CHECKING:  # rich is imported when something is shown
    from rich.progress import Progress, Task

Log: TypeAlias = Callable[[str], None]

# Columns of the bar itself, the share and the time left; one is between two columns.
_WIDTHS = (10, 5, 11)

# The live bars, by their terminals.
_bars: dict[TextIO, Progress] = {}


# All but tab and line feed, which a terminal would obey, and what reverses text.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escape_controls(text: str) -> str:
    r"""Escapes control characters, for text that goes to a terminal.

    Example:
      >>> print(escape_controls("a\tb" + chr(27) + "[2J" + chr(0x202E)))
      a       b\x1b[2J\u202e
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def print_line(text: str, stream: TextIO | None = None) -> None:
    """Prints text, above the bar if the stream shows one; errors are ignored."""
    text, stream = escape_controls(text), stream or sys.stderr
    if (bar := _bars.get(getattr(stream, "rich_proxied_file", stream))) is not None:
        # The terminal wraps: a command wrapped by rich cannot be copied.
        plain: Any = dict.fromkeys(("markup", "highlight", "emoji"), False)
        bar.console.print(text, **plain, soft_wrap=True)
        return
    with contextlib.suppress(OSError):  # the reader is gone, or the disk is full
        print(text, file=stream, flush=True)


class ProgressLabels(NamedTuple):
    """Labels of a progress bar, such as "encoded" and "pairs"; units may be ""."""

    done: str
    units: str = ""


ENCODING = ProgressLabels("encoded", "pairs")


class ProgressBar(contextlib.AbstractContextManager["ProgressBar"]):
    """Shows units done, their rate and the time left; a context manager.

    On a terminal they are the columns of a bar, elsewhere lines of the same columns.
    Rich estimates the time left from what came after the first update, whose units may
    include compilation.

    Args:
      log: writes a line to `stream`; None disables all output.
      every_seconds: between two lines if `stream` is not a terminal; 0 for none.
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
        self._log, self._every_seconds = log, every_seconds or math.inf
        self._stream = stream or sys.stderr
        self._progress: Progress | None = None
        self._head_width, self._began, self._shown = 0, 0.0, 0.0

    @property
    def is_enabled(self) -> bool:
        """Whether anything is logged."""
        return self._log is not None

    @property
    def has_bar(self) -> bool:
        """Whether the bar is shown."""
        return self._stream in _bars and _bars[self._stream] is self._progress

    @property
    def text_width(self) -> int:
        """Columns of the bar for the text of `show`; 0 without a bar."""
        if self._progress is None or not self.has_bar:
            return 0
        left = self._progress.console.width - self._head_width
        return max(1, left - sum(_WIDTHS) - len(_WIDTHS) - 1)

    def log(self, text: str) -> None:
        """Writes a line."""
        if self._log is not None:
            self._log(text)

    @contextlib.contextmanager
    def heartbeat(self, what: str) -> Iterator[None]:
        """Logs the elapsed time of an operation without a known end."""
        if self._log is None:
            yield
            return
        began, ended = time.monotonic(), threading.Event()
        # None waits for the end; a thread cannot wait for inf seconds.
        every = self._every_seconds if math.isfinite(self._every_seconds) else None

        def beat() -> None:
            while not ended.wait(every):
                self.log(f"{what}: {format_clock(time.monotonic() - began)} so far …")

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def start(self, *, total: int | None, done: int = 0) -> ProgressBar:
        """Begins to count.

        Args:
          total: units in all; None if unknown.
          done: units done before, excluded from the rate.
        """
        self._began = self._shown = time.monotonic()
        if self._log is not None:
            self._head_width = len(self._head(max(done, total or 0), total))
            self._progress = _columns(self._head_width, self._stream)
            head = self._head(done, total)
            self._progress.add_task(head, total=total, completed=done, text="", eta="")
            self._open_bar()
        return self

    def _open_bar(self) -> None:
        waited = time.monotonic() - self._began
        if self._progress and self._stream.isatty() and waited >= self._patience:
            _bars[self._stream] = self._progress
            self._progress.start()
            # Nothing could show it again where the process has to end at once.
            self._progress.console.show_cursor()

    def advance(self, number: int) -> None:
        """Adds finished units."""
        if self._progress is None:
            return
        task = self._update(self._progress, number)
        if not self.has_bar:
            self._open_bar()
        now = time.monotonic()
        if self.has_bar or now - self._shown >= self._every_seconds:
            self._shown, rate = now, task.finished_speed or task.speed or 0.0
            pace = f"{rate:,.{0 if rate >= 10 else 1}f} {self._work.units}/s"
            self.show(pace if rate else "")

    def show(self, text: str = "", *, done: int | None = None) -> None:
        """Updates the bar, or logs a line where there is none.

        Args:
          text: follows the numbers; may have several lines in a bar.
          done: units done, those before included; None if unchanged.
        """
        if self._progress is None:
            return
        task = self._progress.tasks[0]
        self._update(self._progress, 0 if done is None else done - int(task.completed))
        left = task.time_remaining
        eta = "" if left is None else f"ETA {format_clock(left)}"
        task.fields |= {"text": text, "eta": eta}
        if not self.has_bar:
            share = "" if task.total is None else f" ({task.percentage:.0f} %)"
            self.log("  ".join(filter(None, (task.description + share, text, eta))))

    def _update(self, progress: Progress, number: int) -> Task:
        """Adds finished units."""
        task, total = progress.tasks[0], progress.tasks[0].total
        done = int(task.completed) + number
        head = self._head(done, None if total is None else int(total))
        progress.update(task.id, completed=done, description=head)
        return task

    def _head(self, done: int, total: int | None) -> str:
        """Returns what is done, such as 'encoded 640/1,000 pairs'."""
        of = "" if total is None else f"/{total:,}"
        units = self._work.units
        units = units.removesuffix("s") if (total or done) == 1 else units
        return f"{self._work.done} {done:,}{of} {units}".rstrip()

    def close(self) -> None:
        """Leaves the bar as it is, and ends its updates."""
        if self.has_bar:
            _bars.pop(self._stream).stop()
        self._progress = None

    def __exit__(self, *_: object) -> None:
        self.close()


def _columns(head_width: int, stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    def column(name: str, kind: Any = TextColumn, **options: Any) -> Any:
        return kind(name, table_column=Column(no_wrap=True, **options), markup=False)

    # A narrow terminal truncates the text, not the numbers or the time left.
    return Progress(
        column("{task.description}", min_width=head_width),
        BarColumn(bar_width=_WIDTHS[0]),
        column("{task.percentage:.0f} %", TaskProgressColumn, min_width=_WIDTHS[1]),
        column("{task.fields[text]}", overflow="ellipsis", ratio=1),
        column("{task.fields[eta]}", min_width=_WIDTHS[2]),
        console=Console(file=stream),
        expand=True,
        get_time=lambda: time.monotonic(),
        speed_estimate_period=3_600,  # a log may have a line in minutes
        # Otherwise rich would print results to stderr.
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
    )
