"""The page of a comparison: curves of all runs over one another, and its tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from t2t_jax.report.comparison import Run, Table
from t2t_jax.report.curves import CHARTS, MAX_POINTS, curves
from t2t_jax.report.markup import Markup, join, page, table, tag, text
from t2t_jax.report.run_page import about_line, curves_section, sections_of

_MIN_POINTS = 150


def compare_page(runs: Sequence[Run], tables: Sequence[Table]) -> str:
    """Returns the page of a comparison.

    Args:
      tables: from `comparison.compare`.
    """
    limit = max(_MIN_POINTS, 3 * MAX_POINTS // len(runs))
    drawn = [curves(run.records, limit=min(limit, MAX_POINTS)) for run in runs]
    thinned = any(one["thinned"] for one in drawn)
    has_curves = {key: True for one in drawn for key in one["curves"]}
    first, *others = [(_id(one.title), one.title, _section(one)) for one in tables]
    shown = ("curves", "Curves", curves_section(has_curves, thinned))
    names = [run.name for run in runs]
    return page(
        title=f"{' · '.join(names)} · t2t_jax",
        header=_header(names),
        main=sections_of([first, shown, *others]),
        data={
            "charts": [chart._asdict() for chart in CHARTS],
            "runs": [
                {"name": run.name, **one} for run, one in zip(runs, drawn, strict=True)
            ],
            "samples": None,
            "attention": [],
        },
        about=about_line(),
    )


def _header(names: Sequence[str]) -> Markup:
    return join(
        [
            tag("p", f"Comparison of {len(names)} runs", class_="eyebrow"),
            tag("h1", join([text(name) for name in names[:3]], " · ")),
        ]
    )


def _id(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower())


def _section(one: Table) -> Markup:
    rows = (
        [[row[0], *map(text, row[1:])] for row in one.rows] if one.is_text else one.rows
    )
    written = [
        table(one.header, rows, caption=one.title, numbers=one.numbers)
        if one.rows
        else "",
        *(tag("p", note, class_="muted") for note in one.notes),
    ]
    return join(written)
