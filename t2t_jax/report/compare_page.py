"""The page of a comparison: curves of all runs over one another, and its tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from t2t_jax.report.comparison import Run
from t2t_jax.report.curves import MAX_POINTS, curves
from t2t_jax.report.page import Block, Section, Table, render
from t2t_jax.report.run_page import curves_part, page_data

_MIN_POINTS = 150


def compare_page(runs: Sequence[Run], tables: Sequence[Table]) -> str:
    """Returns the page of a comparison.

    Args:
      tables: from `comparison.compare`.
    """
    limit = min(max(_MIN_POINTS, 3 * MAX_POINTS // len(runs)), MAX_POINTS)
    drawn = [curves(run.records, limit=limit) for run in runs]
    first, *others = [
        Section(re.sub(r"\W+", "-", one.title.lower()), one.title, [one])
        for one in tables
    ]
    chart = curves_part(
        {key: True for one in drawn for key in one["curves"]},
        any(one["thinned"] for one in drawn),
    )
    names = [run.name for run in runs]
    return render(
        title=" · ".join(names),
        header=Block(
            "names_header.html",
            {"about": f"Comparison of {len(names)} runs", "names": names},
        ),
        sections=[first, Section("curves", "Curves", [chart]), *others],
        data=page_data(zip(names, drawn, strict=True)),
    )
