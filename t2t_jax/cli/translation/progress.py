"""Reports the progress of a translation, and a summary, on stderr."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from t2t_jax.data.files.file_facts import count_lines
from t2t_jax.data.files.progress_bar import ProgressBar, ProgressLabels, print_line
from t2t_jax.devices.distributed.processes import Processes
from t2t_jax.errors import UserError

_MAX_WARNINGS = 3
_COUNTED_BYTES = 200_000_000  # on disk: two or three seconds, if packed

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

STATUS_WORDS = {
    "unmet_terms": "without a term",
    "invalid_utf8": "not UTF-8",
    "empty": "empty",
    "no_output": "without output",
    "no_eos": "without an end",
    "repaired": "repaired",
    "truncated": "cut",
    "short": "short",
    "unfamiliar": "unfamiliar",
    "chunked": "split",
}
"""Human-readable words for each status but "ok"."""

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
        total: int | None,
        *,
        is_enabled: bool = True,
        done: int = 0,
        is_stream: bool = False,
    ):
        self._total, self._done, self._is_stream = total, done, is_stream
        self.statuses: Counter[str] = Counter()
        self._lines, self._began = 0, time.monotonic()
        self._bar = start_progress(TRANSLATING, total, is_enabled=is_enabled, done=done)
        # A stream has no end and no rate, so its bar does not appear.
        self.advance = (lambda number: None) if is_stream else self._bar.advance

    def __enter__(self) -> TranslationProgress:
        return self

    def count_statuses(self, output: Iterable[str], *, first: int) -> Iterator[str]:
        """Counts the statuses of each output line, and yields the line without them.

        Logs the first three warnings of a status.

        Args:
          output: from `TranslationJob.translate_window`.
          first: offset of the lines in the file.
        """
        for number, line in enumerate(output, start=first + 1):
            statuses, _, rendered = line.partition(" ")
            self._lines += 1
            self.statuses.update(found := statuses.split(","))
            for status in WARNINGS.keys() & set(found):
                if (times := self.statuses[status]) <= _MAX_WARNINGS:
                    last = " (further lines are counted)" * (times == _MAX_WARNINGS)
                    self._bar.log(f"warning: line {number:,} {WARNINGS[status]}{last}.")
            yield rendered

    def gather(self, processes: Processes) -> None:
        """Adds what other processes have counted. Collective: call on every process."""
        from t2t_jax.devices.distributed.gather import allgather_strings

        mine = [json.dumps([self._lines, self.statuses])]
        every = [json.loads(text) for (text,) in allgather_strings(mine, processes)]
        self._lines = sum(lines for lines, _ in every)
        self.statuses = sum((Counter(found) for _, found in every), Counter())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bar.close()
        is_quiet = self._is_stream and not self.statuses.keys() & _NOTABLE
        if kind is not None or is_quiet:
            return
        lines = "line was" if self._done == 1 else "lines were"
        before = f" {self._done:,} {lines} translated before." if self._done else ""
        is_old = self._total and 0 < self._done == self._total
        self._bar.log(f"{'All' if is_old else self._summary()}{before}")

    def _summary(self) -> str:
        """Summarizes the statuses of all lines in one line; a line may have several."""
        odd = [
            f"{self.statuses[status]:,} {words}"
            for status, words in STATUS_WORDS.items()
            if self.statuses[status]
        ]
        pace = ""
        if not self._is_stream:
            seconds = time.monotonic() - self._began
            rate = self._lines / max(seconds, 1e-3)
            pace = f" in {seconds:.1f} s, {rate:,.1f} lines/s"
        lines = f"{self._lines:,} line{'s' * (self._lines != 1)}"
        return f"Translated {lines}{pace}{': ' * bool(odd)}{', '.join(odd)}."


def start_progress(
    work: ProgressLabels, total: int | None, *, is_enabled: bool = True, done: int = 0
) -> ProgressBar:
    """Starts a progress bar, which appears after two seconds; a context manager.

    Args:
      is_enabled: whether to print; true for one process only.
      done: units done before, excluded from the rate.
    """
    log = print_line if is_enabled else None
    return ProgressBar(log, work=work, patience=2.0).start(total=total, done=done)


def total_lines(name: str) -> int | None:
    """Counts the lines of a file that is counted quickly.

    Args:
      name: of a file or a pipe, or `-`.

    Returns:
      None for a pipe, for stdin, for more than 200 MB on disk, or if the file cannot
      be read.
    """
    path = Path(name)
    with suppress(UserError, OSError):
        if name != "-" and path.is_file() and path.stat().st_size <= _COUNTED_BYTES:
            return count_lines(path)
    return None
