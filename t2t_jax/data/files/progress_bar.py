"""Progress of long work: a bar on a terminal, lines at intervals elsewhere."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TextIO, TypeAlias

Log: TypeAlias = Callable[[str], None]

# The first units include compilation, so their rate gives no usable ETA.
_ETA_SHARE = 10
_ETA_UNITS = 10_000

# Columns of the bar itself, the share and the time left; one is between two columns.
_WIDTHS = (10, 5, 11)

# The live bars, by their terminals.
_bars: dict[TextIO, Any] = {}


# All but tab and line feed; a terminal would obey those of a corpus.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def escape_controls(text: str) -> str:
    r"""Escapes control characters, for text that goes to a terminal.

    Example:
      >>> print(escape_controls("a\tb" + chr(27) + "[2J"))
      a       b\x1b[2J
    """
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def print_line(text: str, stream: TextIO | None = None) -> None:
    """Prints text, above the bar if the stream shows one; errors are ignored."""
    text, stream = escape_controls(text), stream or sys.stderr
    bar = _bars.get(getattr(stream, "rich_proxied_file", stream))
    if bar is not None:
        # The terminal wraps: a command wrapped by rich cannot be copied.
        bar.console.print(
            text, markup=False, highlight=False, emoji=False, soft_wrap=True
        )
        return
    with contextlib.suppress(OSError):  # the reader is gone, or the disk is full
        print(text, file=stream, flush=True)


class ProgressLabels(NamedTuple):
    """Labels of a progress bar, such as "encoded" and "pairs"; units may be ""."""

    done: str
    units: str = ""


ENCODING = ProgressLabels("encoded", "pairs")


class ProgressBar:
    """Shows units done, their rate and the time left; a context manager.

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
        self._bar: Any = None
        self._total: int | None = None
        self._is_exact = True
        self._done = self._first = self._head_width = 0
        self._began = self._shown = 0.0

    @property
    def is_enabled(self) -> bool:
        """Whether anything is logged."""
        return self._log is not None

    @property
    def has_bar(self) -> bool:
        """Whether the bar is shown."""
        return self._bar is not None

    @property
    def text_width(self) -> int:
        """Columns of the bar for the text of `show`; 0 without a bar."""
        if self._bar is None:
            return 0
        left: int = self._bar.console.width - self._head_width
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

        def beat() -> None:
            # None waits for the end; a thread cannot wait for inf seconds.
            every = self._every_seconds
            while not ended.wait(every if math.isfinite(every) else None):
                self.log(f"{what}: {format_clock(time.monotonic() - began)} so far …")

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
        self._head_width = len(self._head(max(self._done, self._total or 0)))
        self._bar = _bars[self._stream] = _rich_bar(self._head_width, self._stream)
        self._bar.add_task("", share="", text="", eta="")
        self.show()
        self._bar.start()
        # Nothing could show it again where the process has to end at once.
        self._bar.console.show_cursor()

    def advance(self, number: int) -> None:
        """Adds finished units."""
        self._done += number
        if self._bar is None:
            self._open_bar()
        now, new = time.monotonic(), self._done - self._first
        if self._bar is None and now - self._shown < self._every_seconds:
            return
        self._shown = now
        rate = new / max(now - self._began, 1e-3)
        share = ((self._total or 0) - self._first) // _ETA_SHARE
        is_early = new < min(share, _ETA_UNITS)
        pace = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        self.show(f"{pace} {self._work.units}/s", show_eta=not is_early)

    def show(
        self, text: str = "", *, done: int | None = None, show_eta: bool = True
    ) -> None:
        """Updates the bar, or logs a line where there is none.

        Args:
          text: follows the numbers; may have several lines in a bar.
          done: units done, those before included; None if unchanged.
          show_eta: whether the rate is reliable enough for an ETA.
        """
        self._done = self._done if done is None else done
        total, share, eta = self._total, "", ""
        if total is not None:
            total = total if self._is_exact else max(total, self._done)
            share = f"{100 * self._done / max(total, 1):.0f} %"
            new = self._done - self._first
            if show_eta and new > 0:
                left = (time.monotonic() - self._began) / new * (total - self._done)
                eta = f"ETA {format_clock(max(left, 0))}"
        head = self._head(self._done)
        if self._bar is None:
            head += f" ({share})" * bool(share)
            self.log("  ".join(filter(None, (head, text, eta))))
            return
        fields = {"description": head, "share": share, "text": text, "eta": eta}
        task = self._bar.task_ids[0]
        self._bar.update(task, total=total, completed=self._done, **fields)

    def _head(self, done: int) -> str:
        """Returns what is done, such as 'encoded 640/about 1,000 pairs'."""
        numbers, most = f"{done:,}", done
        if self._total is not None:
            most = self._total if self._is_exact else max(self._total, done)
            numbers += f"/{'' if self._is_exact else 'about '}{most:,}"
        units = self._work.units
        units = units.removesuffix("s") if most == 1 else units
        return f"{self._work.done} {numbers} {units}".rstrip()

    def close(self) -> None:
        """Leaves the bar as it is, and ends its updates."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            del _bars[self._stream]

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def format_clock(seconds: float) -> str:
    """Formats a duration as h:mm:ss.

    Example:
      >>> format_clock(3671)
      '1:01:11'
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}"


def _rich_bar(head_width: int, stream: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    def column(name: str, **options: Any) -> TextColumn:
        table_column = Column(no_wrap=True, **options)
        return TextColumn(name, table_column=table_column, markup=False)

    # A narrow terminal truncates the text, not the numbers or the time left.
    return Progress(
        column("{task.description}", min_width=head_width),
        BarColumn(bar_width=_WIDTHS[0]),
        column("{task.fields[share]}", min_width=_WIDTHS[1]),
        column("{task.fields[text]}", overflow="ellipsis", ratio=1),
        column("{task.fields[eta]}", min_width=_WIDTHS[2]),
        console=Console(file=stream),
        expand=True,
        # Otherwise rich would print results to stderr.
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
    )
