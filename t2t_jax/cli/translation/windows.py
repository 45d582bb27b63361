"""The lines of a file of any length, some thousands at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from t2t_jax.cli.processes.stages import check_same_input, run_stage
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import DataError

# Lines of like length are translated together within a window. So many of them are
# some hundred batches, of which the few that are not full cost about one in a hundred.
_MOST_LINES = 10_000
# Memory is bounded whatever a line is.
_MOST_CHARACTERS = 4_000_000
_GROWTH = 4


class LineWindow(NamedTuple):
    """Lines that follow one another.

    Attributes:
      first: how many lines of the file there are before them.
      lines: at least one.
      prefixes: what the translation of each begins with; None where nothing is forced.
    """

    first: int
    lines: list[str]
    prefixes: list[str] | None


def windows(
    lines: Iterable[str],
    prefixes: Iterable[str] | None = None,
    *,
    first: int = 0,
    smallest: int = _MOST_LINES,
) -> Iterator[LineWindow]:
    """Reads lines a window at a time, the same windows wherever they are read.

    Args:
      lines: of a file, to its end or to somewhere before.
      prefixes: as many; None where nothing is forced.
      first: how many lines of the file there are before these.
      smallest: lines of the first window, so that its translations are there early;
        each window has four times as many as the one before, up to 10,000. It does not
        depend on who reads the output, which is the same in a pipe and in a file.

    Yields:
      All lines, in their order.

    Raises:
      DataError: there are not as many prefixes as lines.

    Example:
      >>> list(windows(["a", "b"], first=7))
      [Window(first=7, lines=['a', 'b'], prefixes=None)]
    """
    forced = None if prefixes is None else iter(prefixes)
    for some in _groups(lines, smallest):
        begins = None if forced is None else list(islice(forced, len(some)))
        if begins is not None:
            check_line_counts(first + len(begins), lines=first + len(some))
        yield LineWindow(first, some, begins)
        first += len(some)
    if forced is not None:
        check_line_counts(first + sum(1 for _ in forced), lines=first)


def check_line_counts(prefixes: int, *, lines: int) -> None:
    """Checks that there is a prefix for each line.

    Args:
      lines: of --input, all or those that were read so far.

    Raises:
      DataError: there are more, or fewer.
    """
    if prefixes != lines:
        raise DataError(
            "--prefixes must have as many lines as --input, and has "
            f"{prefixes:,} beside {lines:,}. Give a line for each, empty where nothing "
            "is forced."
        )


def shared_windows(
    processes: Processes, found: Iterator[LineWindow], *, flag: str
) -> Iterator[LineWindow]:
    """Lets all processes read side by side, and checks that they read the same.

    Args:
      processes: all of them come here, for each window and for the end.

    Yields:
      What it reads.

    Raises:
      Ended: some process could not read on, or has read something else. One alone
        raises what reading has met.
    """
    first = 0
    while True:
        window = run_stage(processes, f"read from {first}", partial(next, found, None))
        lines = [] if window is None else [*window.lines, *(window.prefixes or ())]
        compare = partial(check_same_input, processes, flag, lines, first=first)
        run_stage(processes, f"compared from {first}", compare)
        if window is None:
            return
        yield window
        first += len(window.lines)


def _groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    size = min(size, _MOST_LINES)
    group: list[str] = []
    characters = 0
    for line in lines:
        if group and characters + len(line) > _MOST_CHARACTERS:
            yield group
            group, characters = [], 0
        group.append(line)
        characters += len(line)
        if len(group) == size:
            yield group
            group, characters = [], 0
            size = min(_GROWTH * size, _MOST_LINES)
    if group:
        yield group
