"""Prints human-readable tables: aligned columns, alone or below titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from t2t_jax.data.files.progress_bar import escape_controls
from t2t_jax.report.page import Table

_NARROWEST, _WIDEST = 80, 100
_UNFOLDED = 1_000_000


def show(tables: Iterable[Table], *, file: TextIO) -> None:
    """Writes a report, 80 to 100 columns wide; styled only on a terminal."""
    width = min(max(Console(file=file).width, _NARROWEST), _WIDEST)
    _print((part for one in tables for part in _parts(one)), file=file, width=width)


def show_rows(rows: Sequence[Sequence[str]], *, file: TextIO) -> None:
    """Writes rows as columns, folded on a terminal and nowhere else."""
    if rows:
        width = None if file.isatty() else _UNFOLDED
        _print([_grid(Table("", (), rows), gap=2)], file=file, width=width)


def _print(parts: Iterable[RenderableType], *, file: TextIO, width: int | None) -> None:
    console = Console(file=file, width=width, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    # rich pads the last column with spaces.
    file.write("\n".join(line.rstrip() for line in capture.get().split("\n")))


def _parts(table: Table) -> Iterator[RenderableType]:
    yield Text(table.title, "bold")
    yield Text("─" * len(table.title), "dim")
    if table.rows:
        yield _grid(table, gap=3)
    yield from map(_text, table.notes)
    yield ""


def _grid(table: Table, *, gap: int) -> Grid:
    shown, padding = bool(table.header), (0, gap, 0, 0)
    grid = Grid(box=None, show_header=shown, pad_edge=False, padding=padding)
    for i, name in enumerate(table.header or [""] * len(table.rows[0])):
        side: JustifyMethod = "right" if i in table.numbers else "left"
        grid.add_column(Text(name), justify=side, overflow="fold")
    for row in table.rows:
        grid.add_row(*map(_text, row))
    return grid


def _text(cell: str) -> Text:
    # Text, because a file name may contain rich markup.
    return Text(escape_controls(cell))


def interval_note(found: Mapping[str, float], level: float) -> str:
    """Formats an interval of `bootstrap_intervals` or `bracket_intervals`.

    Example:
      >>> interval_note({"mean": 30.0, "half_width": 1.5}, 0.95)
      '95 %: 28.50 to 31.50'
    """
    mean, half = found["mean"], found["half_width"]
    return f"{100 * level:g} %: {mean - half:.2f} to {mean + half:.2f}"
