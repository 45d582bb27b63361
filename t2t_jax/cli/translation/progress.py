"""Reports the progress of a translation, and a summary, on stderr."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from t2t_jax.cli.translation.formats import summary
from t2t_jax.data.files.line_counts import Count, estimate_lines
from t2t_jax.data.files.progress_bar import ProgressBar, ProgressLabels, print_line
from t2t_jax.errors import UserError

_PATIENCE = 2.0  # seconds
_MAX_WARNINGS = 3

_SEPARATOR = ","
WARNINGS = {
    "invalid_utf8": "is not UTF-8; invalid bytes were replaced",
    "unmet_terms": "lacks terms: they did not fit its longest translation, or it was "
    "translated in parts",
    "unfamiliar": "is unfamiliar: the training text had less than two thirds of its "
    "words",
}
"""Warnings about lines, by status; other statuses are only in the summary."""

# For which a stream has a summary.
_NOTABLE = {*WARNINGS, "no_output", "repaired", "short"}

TRANSLATING = ProgressLabels("translated", "lines")
"""Labels of a translation."""


class TranslationProgress:
    """Counts translated lines and shows progress; a context manager.

    Args:
      total: number of lines; None if unknown.
      is_enabled: whether to print; true for one process only.
      done: lines translated by an earlier job, excluded from the rate.
      is_stream: whether lines arrive over time: the summary then has no rate, and is
        printed only after a warning, or if a parse was repaired.
    """

    def __init__(
        self,
        total: Count | None,
        *,
        is_enabled: bool = True,
        done: int = 0,
        is_stream: bool = False,
    ):
        self._total, self._done, self._is_stream = total, done, is_stream
        self._statuses: Counter[str] = Counter()
        self._lines = 0
        self._began = time.monotonic()
        number, is_exact = total or (None, True)
        self._progress = start_progress(
            TRANSLATING, number, is_enabled=is_enabled, is_exact=is_exact, done=done
        )

    def __enter__(self) -> TranslationProgress:
        return self

    def advance(self, number: int) -> None:
        """Reports that `number` more lines are translated."""
        self._progress.advance(number)

    def count_statuses(self, output: Iterable[str], *, first: int) -> Iterator[str]:
        """Counts the statuses of each output line, and yields the line without them.

        Args:
          output: from `TranslationJob.translate_window`.
          first: offset of the lines in the file.
        """
        for number, line in enumerate(output, start=first + 1):
            statuses, _, rendered = line.partition(" ")
            self.count(statuses.split(_SEPARATOR), number)
            yield rendered

    def count(self, statuses: Sequence[str], number: int) -> None:
        """Counts a line, numbered from 1; logs the first three warnings of a status."""
        self._lines += 1
        for status in statuses:
            self._statuses[status] += 1
            found = self._statuses[status]
            if status in WARNINGS and found <= _MAX_WARNINGS:
                last = " (further lines are counted)" * (found == _MAX_WARNINGS)
                self._progress.log(
                    f"warning: line {number:,} {WARNINGS[status]}{last}."
                )

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._progress.close()
        if kind is not None:
            return
        if self._is_stream and not self._statuses.keys() & _NOTABLE:
            return
        lines = "line was" if self._done == 1 else "lines were"
        before = f" {self._done:,} {lines} translated before." if self._done else ""
        if self._total and 0 < self._done == self._total.number:
            self._progress.log(f"All{before}")
        else:
            self._progress.log(self._summary() + before)

    def _summary(self) -> str:
        seconds = None if self._is_stream else time.monotonic() - self._began
        return summary(self._statuses, lines=self._lines, seconds=seconds)


def with_statuses(statuses: Sequence[str], rendered: str) -> str:
    """Writes the statuses of a line before its output, for `count_statuses`."""
    return f"{_SEPARATOR.join(statuses)} {rendered}"


def start_progress(
    work: ProgressLabels,
    total: int | None,
    *,
    is_enabled: bool = True,
    is_exact: bool = True,
    done: int = 0,
) -> ProgressBar:
    """Starts a progress bar, which appears after two seconds; a context manager.

    Args:
      is_enabled: whether to print; true for one process only.
      is_exact: whether the total was counted, not estimated.
      done: units done before, excluded from the rate.
    """
    log = print_line if is_enabled else None
    progress = ProgressBar(log, work=work, patience=_PATIENCE)
    return progress.start(total=total, is_exact=is_exact, done=done)


def total_lines(name: str) -> Count | None:
    """Counts the lines of a file, or estimates them for large files.

    Args:
      name: of a file or a pipe, or `-`.

    Returns:
      None for a pipe, for stdin, or if the file cannot be read.
    """
    if name != "-" and Path(name).is_file():
        with suppress(UserError):
            return estimate_lines(Path(name))
    return None
