"""Prints human-readable tables: aligned columns, alone or in titled sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TextIO

from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from t2t_jax.data.files.progress_bar import escape_controls

_NARROWEST, _WIDEST = 80, 100
_UNFOLDED = 1_000_000


class Section(NamedTuple):
    """A section of a report.

    Attributes:
      rows: cells; as many per row as in `header`, if there is one.
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
    width = min(max(Console(file=file).width, _NARROWEST), _WIDEST)
    _print((part for one in sections for part in _parts(one)), file=file, width=width)


def show_rows(rows: Sequence[Sequence[str]], *, file: TextIO) -> None:
    """Writes rows as columns, folded on a terminal and nowhere else."""
    if rows:
        width = None if file.isatty() else _UNFOLDED
        _print([_table(Section("", rows), gap=2)], file=file, width=width)


def _print(parts: Iterable[RenderableType], *, file: TextIO, width: int | None) -> None:
    console = Console(file=file, width=width, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    # rich pads the last column with spaces.
    file.write("\n".join(line.rstrip() for line in capture.get().split("\n")))


def _parts(section: Section) -> Iterator[RenderableType]:
    yield Text(section.title, "bold")
    yield Text("─" * len(section.title), "dim")
    if section.rows:
        yield _table(section, gap=3)
    yield from map(_text, section.notes)
    yield ""


def _table(section: Section, *, gap: int) -> Table:
    table = Table(
        box=None,
        show_header=bool(section.header),
        pad_edge=False,
        padding=(0, gap, 0, 0),
    )
    for i, name in enumerate(section.header or [""] * len(section.rows[0])):
        side: JustifyMethod = "right" if i in section.right else "left"
        table.add_column(Text(name), justify=side, overflow="fold")
    for row in section.rows:
        table.add_row(*map(_text, row))
    return table


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
