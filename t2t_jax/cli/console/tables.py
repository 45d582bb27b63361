"""Prints a human-readable report: titled sections with aligned columns and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

_NARROWEST, _WIDEST = 80, 100


class Section(NamedTuple):
    """A section of a report.

    Attributes:
      rows: cells; as many per row as in `header`, if there is one.
      header: column titles; may be empty.
      right: indices of right-aligned columns.
      notes: lines below the table.
    """

    title: str
    rows: Sequence[Sequence[str]] = ()
    header: Sequence[str] = ()
    right: Sequence[int] = ()
    notes: Sequence[str] = ()


def show(sections: Iterable[Section], *, file: TextIO) -> None:
    """Writes a report, 80 to 100 columns wide; styled only on a terminal."""
    terminal = Console(file=file)
    width = min(max(terminal.width, _NARROWEST), _WIDEST)
    console = Console(file=file, width=width, highlight=False)
    with console.capture() as capture:
        for section in sections:
            _show(section, console)
    # rich pads the last column with spaces.
    file.write("\n".join(line.rstrip() for line in capture.get().split("\n")))


def _show(section: Section, console: Console) -> None:
    console.print(Text(section.title, "bold"))
    console.print(Text("─" * len(section.title), "dim"))
    if section.rows:
        console.print(_table(section))
    for note in section.notes:
        console.print(Text(note))
    console.print()


def _table(section: Section) -> Table:
    table = Table(
        box=None, show_header=bool(section.header), pad_edge=False, padding=(0, 3, 0, 0)
    )
    for i, name in enumerate(section.header or [""] * len(section.rows[0])):
        right = i in section.right
        table.add_column(
            Text(name), justify="right" if right else "left", overflow="fold"
        )
    for row in section.rows:
        # Text, because a file name may contain rich markup.
        table.add_row(*map(Text, row))
    return table
