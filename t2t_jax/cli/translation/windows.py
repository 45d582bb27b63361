"""Reads files of any length in windows of up to 10,000 lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from t2t_jax.errors import DataError

# Lines are batched by length within a window. This many make some hundred batches, so
# that the few partial ones cost about 1 %.
_MAX_LINES = 10_000
_MAX_CHARACTERS = 4_000_000  # bounds memory
_GROWTH = 4


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


def windows(
    lines: Iterable[str],
    prefixes: Iterable[str] | None = None,
    terms: Iterable[str] | None = None,
    *,
    first: int = 0,
    smallest: int = _MAX_LINES,
) -> Iterator[LineWindow]:
    """Splits lines into windows, deterministically.

    Args:
      prefixes: as many as lines; None means no prefixes.
      terms: as many as lines; None means no terms.
      first: offset of `lines` in the file.
      smallest: lines of the first window, so that output starts early; each window has
        four times as many as the previous, up to 10,000.

    Raises:
      DataError: the number of prefixes or of lines of terms is another one.

    Example:
      >>> list(windows(["a", "b"], first=7))
      [LineWindow(first=7, lines=['a', 'b'], prefixes=None, terms=None)]
    """
    beside = {"prefixes": prefixes, "terms": terms}
    opened = {name: iter(one) for name, one in beside.items() if one is not None}
    for group in _groups(lines, smallest):
        found = {name: list(islice(one, len(group))) for name, one in opened.items()}
        for name, some in found.items():
            check_line_counts(first + len(some), lines=first + len(group), flag=name)
        yield LineWindow(first, group, found.get("prefixes"), found.get("terms"))
        first += len(group)
    for name, one in opened.items():
        check_line_counts(first + sum(1 for _ in one), lines=first, flag=name)


_EMPTY_LINE = {"prefixes": "forces no prefix", "terms": "requires no terms"}


def check_line_counts(number: int, *, lines: int, flag: str = "prefixes") -> None:
    """Checks that a file beside the input has a line for each of its lines.

    Raises:
      DataError: the numbers differ.
    """
    if number != lines:
        raise DataError(
            f"--{flag} must have as many lines as --input, but has {number:,} instead "
            f"of {lines:,}. Pass one line for each; an empty line {_EMPTY_LINE[flag]}."
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
