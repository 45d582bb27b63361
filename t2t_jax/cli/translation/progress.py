"""Tells people how far a translation has come, and in the end how it went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.translation.formats import summary
from t2t_jax.data.files.line_counts import Count, estimate_lines
from t2t_jax.data.files.progress import ProgressBar, ProgressLabels
from t2t_jax.errors import UserError

_PATIENCE = 2.0  # seconds
_MOST_WARNINGS = 3

WARNINGS = {
    "invalid_utf8": "is not UTF-8; what could not be read was replaced",
    "unfamiliar": "is unfamiliar: the training text had less than two thirds of its "
    "words",
}
"""What is wrong with a line of some statuses; the others are in the summary only."""

TRANSLATING = ProgressLabels("translated", "lines")
"""The work of most modes."""


class TranslationProgress:
    """Counts lines while they are translated; to be used in a `with` statement.

    Args:
      total: how many lines there are; None where that is not known.
      is_heard: whether anything is said, which one of several processes does.
      done: lines that were translated before, and took none of the time.
      is_stream: whether lines come at any time. The summary then has no rate, and there
        is one only where a line was warned of.
    """

    def __init__(
        self,
        total: Count | None,
        *,
        is_heard: bool = True,
        done: int = 0,
        is_stream: bool = False,
    ):
        self._total, self._is_heard, self._done = total, is_heard, done
        self._is_stream = is_stream
        self._progress = ProgressBar(
            log if is_heard else None,
            work=TRANSLATING,
            patience=_PATIENCE,
        )
        self._statuses: Counter[str] = Counter()
        self._began = 0.0

    def __enter__(self) -> TranslationProgress:
        number, is_exact = self._total or (None, True)
        self._progress.start(total=number, is_exact=is_exact, done=self._done)
        self._began = time.monotonic()
        return self

    def advance(self, number: int) -> None:
        """Shows that so many lines more are translated."""
        self._progress.advance(number)

    def count_statuses(self, told: Iterable[str], *, first: int) -> Iterator[str]:
        """Takes the status off each line that is to be written, and counts it.

        Args:
          told: from `TranslationJob.translate_window`.
          first: how many lines there are before them.

        Yields:
          What is to be written.
        """
        for number, line in enumerate(told, start=first + 1):
            status, _, written = line.partition(" ")
            self.count(status, number)
            yield written

    def count(self, status: str, number: int) -> None:
        """Counts a line, and warns of the first few that will not be translated well.

        Args:
          number: of the line, from 1.
        """
        self._statuses[status] += 1
        found = self._statuses[status]
        if status in WARNINGS and found <= _MOST_WARNINGS:
            last = " (further lines are counted)" * (found == _MOST_WARNINGS)
            self._progress.log(f"warning: line {number:,} {WARNINGS[status]}{last}.")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.__exit__(kind, error, trace)
        if error is None and self._is_heard:
            if self._is_stream and not self._statuses.keys() & WARNINGS.keys():
                return
            seconds = None if self._is_stream else time.monotonic() - self._began
            lines = "line was" if self._done == 1 else "lines were"
            before = f" {self._done:,} {lines} there before." if self._done else ""
            if self._total and 0 < self._done == self._total.number:
                log(f"All{before}")
            else:
                log(summary(self._statuses, seconds=seconds) + before)


def progress_of(
    work: ProgressLabels, total: int, *, is_heard: bool = True
) -> ProgressBar:
    """Starts to show how far work on many lines has come, if it takes long.

    Args:
      work: what is done to what.
      is_heard: whether anything is shown, which one of several processes does.

    Returns:
      A context manager to be advanced.
    """
    progress = ProgressBar(log if is_heard else None, work=work, patience=_PATIENCE)
    return progress.start(total=total)


def total_lines(name: str) -> Count | None:
    """Counts the lines of a file that can be read twice, or foretells them.

    Args:
      name: of a file or a pipe, or `-`.

    Returns:
      None where that cannot be done; what is wrong with a file, reading it will tell.
    """
    if name != "-" and Path(name).is_file():
        with suppress(UserError):
            return estimate_lines(Path(name))
    return None
