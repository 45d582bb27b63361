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
    """

    first: int
    lines: list[str]
    prefixes: list[str] | None


def windows(
    lines: Iterable[str],
    prefixes: Iterable[str] | None = None,
    *,
    first: int = 0,
    smallest: int = _MAX_LINES,
) -> Iterator[LineWindow]:
    """Splits lines into windows, deterministically.

    Args:
      prefixes: as many as lines; None means no prefixes.
      first: offset of `lines` in the file.
      smallest: lines of the first window, so that output starts early; each window has
        four times as many as the previous, up to 10,000.

    Raises:
      DataError: the number of prefixes differs from that of lines.

    Example:
      >>> list(windows(["a", "b"], first=7))
      [LineWindow(first=7, lines=['a', 'b'], prefixes=None)]
    """
    forced = None if prefixes is None else iter(prefixes)
    for group in _groups(lines, smallest):
        begins = None if forced is None else list(islice(forced, len(group)))
        if begins is not None:
            check_line_counts(first + len(begins), lines=first + len(group))
        yield LineWindow(first, group, begins)
        first += len(group)
    if forced is not None:
        check_line_counts(first + sum(1 for _ in forced), lines=first)


def check_line_counts(prefixes: int, *, lines: int) -> None:
    """Checks that there is one prefix per line.

    Raises:
      DataError: the numbers differ.
    """
    if prefixes != lines:
        raise DataError(
            "--prefixes must have as many lines as --input, but has "
            f"{prefixes:,} instead of {lines:,}. Pass one line for each; an empty line "
            "forces no prefix."
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
