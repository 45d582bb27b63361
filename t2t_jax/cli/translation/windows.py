"""Reads the lines of a job: in windows of up to 10,000, or as they arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import NamedTuple

from t2t_jax.cli.console.text_io import text_lines
from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.data.files.file_facts import count_lines
from t2t_jax.errors import DataError

# Lines are batched by length within a window. This many make some hundred batches, so
# that the few partial ones cost about 1 %.
_MAX_LINES = 10_000
_MAX_CHARACTERS = 4_000_000  # bounds memory
_GROWTH = 4
_SIDECARS = {"prefixes": "forces no prefix", "terms": "requires no terms"}

LINE_FILES = ("input", *_SIDECARS)
"""The flags of files that have a line for each line of the output."""


class LineWindow(NamedTuple):
    """Consecutive lines, and the offset of the first in the file.

    Attributes:
      prefixes: forced prefixes of the translations, as many as lines; or None.
      terms: what the translations must contain, as many as lines, with tabs between
        terms; or None.
    """

    first: int
    lines: list[str]
    prefixes: list[str] | None = None
    terms: list[str] | None = None

    def part(self, start: int, lines: list[str]) -> LineWindow:
        """Returns the window of some of its lines, from number `start` of it."""
        end = start + len(lines)
        prefixes = self.prefixes and self.prefixes[start:end]
        terms = self.terms and self.terms[start:end]
        return LineWindow(self.first + start, lines, prefixes, terms)


def line_files(options: TranslateOptions) -> dict[str, str]:
    """Returns the given files that have a line for each line of the output, by flag."""
    files = {name: getattr(options, name) for name in LINE_FILES}
    return {name: path for name, path in files.items() if path or name == "input"}


def is_strict(options: TranslateOptions, name: str) -> bool:
    """Returns whether a line of a file that is not UTF-8 is an error.

    A term that was not read as it was written could never be found.
    """
    return options.strict or name == "terms"


def open_windows(options: TranslateOptions, *, smallest: int) -> Iterator[LineWindow]:
    """Opens the files of lines; the first windows are small, so that output is early.

    Args:
      smallest: lines of the first window.

    Raises:
      InputMissingError: a file does not exist or cannot be opened.
      DataError: two are files, with different numbers of lines.
    """
    files = line_files(options)
    if len(files) > 1 and Path(options.input).is_file():
        lines = count_lines(Path(options.input))
        for name, path in files.items():
            if Path(path).is_file():
                check_line_counts(count_lines(Path(path)), lines=lines, flag=name)
    texts = {
        name: text_lines(path, flag=name, strict=is_strict(options, name))
        for name, path in files.items()
    }
    return windows(texts, smallest=smallest)


def windows(
    texts: Mapping[str, Iterable[str]], *, first: int = 0, smallest: int = _MAX_LINES
) -> Iterator[LineWindow]:
    """Splits lines into windows, deterministically.

    Args:
      texts: the lines of `input`, and of `prefixes` and `terms` if there are any.
      first: offset of the lines in their files.
      smallest: lines of the first window; each window has four times as many as the
        previous, up to 10,000.

    Raises:
      DataError: the number of prefixes or of lines of terms is another one.

    Example:
      >>> list(windows({"input": ["a", "b"]}, first=7))
      [LineWindow(first=7, lines=['a', 'b'], prefixes=None, terms=None)]
    """
    sidecars = {name: iter(texts[name]) for name in texts if name != "input"}
    for group in _groups(texts["input"], smallest):
        beside = {name: list(islice(sidecars[name], len(group))) for name in sidecars}
        for name, lines in beside.items():
            check_line_counts(first + len(lines), lines=first + len(group), flag=name)
        yield LineWindow(first, group, **beside)
        first += len(group)
    for name, rest in sidecars.items():
        check_line_counts(first + sum(1 for _ in rest), lines=first, flag=name)


def check_line_counts(number: int, *, lines: int, flag: str) -> None:
    """Checks that a file beside the input has a line for each of its lines.

    Raises:
      DataError: the numbers differ.
    """
    if number != lines:
        raise DataError(
            f"--{flag} must have as many lines as --input, but has {number:,} instead "
            f"of {lines:,}. Pass one line for each; an empty line {_SIDECARS[flag]}."
        )


def _groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    size = min(size, _MAX_LINES)
    group: list[str] = []
    characters = 0
    for line in lines:
        if group and characters + len(line) > _MAX_CHARACTERS:
            yield group
            group, characters = [], 0
        group.append(line)
        characters += len(line)
        if len(group) == size:
            yield group
            group, characters = [], 0
            size = min(_GROWTH * size, _MAX_LINES)
    if group:
        yield group


class LineStream:
    """Groups of 1 to `most` lines, each of the lines available at that time.

    Reads in a thread, at most `most` lines ahead, and decodes as
    `text_lines`. Blocks only while no line is available; read errors are
    raised after the lines before them.

    Raises:
      InputMissingError: the file does not exist or cannot be opened.
    """

    def __init__(self, name: str, *, most: int, strict: bool = False):
        self._waiting: Queue[str | Exception | None] = Queue(most)
        lines = text_lines(name, strict=strict)
        # A daemon, so that a blocked read does not keep the process alive.
        Thread(target=self._read, args=(lines,), daemon=True).start()

    def has_next(self) -> bool:
        """Returns whether a line, or the end of the file, is available."""
        return not self._waiting.empty()

    def __iter__(self) -> Iterator[list[str]]:
        lines: list[str] = []
        while isinstance(item := self._waiting.get(), str):
            lines.append(item)
            if len(lines) == self._waiting.maxsize or self._waiting.empty():
                yield lines
                lines = []
        if lines:
            yield lines
        if item is not None:
            raise item

    def _read(self, lines: Iterable[str]) -> None:
        """Queues the lines, and then the error that ended reading, or None."""
        end: Exception | None = None
        try:
            for line in lines:
                self._waiting.put(line)
        except Exception as error:  # Any: the consumer would wait forever.
            end = error
        self._waiting.put(end)
