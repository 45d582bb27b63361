"""Formats the data report of a run as text, by the template beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from t2t_jax.data.config import SIDES
from t2t_jax.data.corpora.corpus import short_name
from t2t_jax.data.report.leakage import copy_warnings, leak_counts, leak_warnings
from t2t_jax.data.report.statistics import DROP_REASONS
from t2t_jax.data.token_cache.known_words import MAX_WORDS

_MAX_BAR_WIDTH = 24
_MAX_PARTS = 40


def report_text(report: dict[str, Any]) -> str:
    """Formats the result of `describe_data` as text.

    Parts of a corpus have a line each; `data.json` has their details.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("t2t_jax.data.report", ""),
        autoescape=False,  # plain text, which quotes the corpus by repr
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "repr": repr,
        "short_name": short_name,
        "trim_end": str.rstrip,
    }
    return environment.get_template("data_report.txt.jinja").render(
        report=report,
        reasons=DROP_REASONS,
        leak_lines=_leak_lines(report["leaks"]),
        copy_warnings=copy_warnings,
        place=_place,
        bar=_bar,
        max_parts=_MAX_PARTS,
        max_words=MAX_WORDS,
    )


def _place(pair: Mapping[str, Any]) -> str:
    return f"line {pair['line']:,} of {short_name(pair['corpus'])}"


def _bar(count: int, most: int) -> str:
    return "█" * math.ceil(_MAX_BAR_WIDTH * count / most)


def _leak_lines(leaks: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["None of its lines is in the training text."]
    if any(found[side] for found in leaks.values() for side in SIDES):
        lines = leak_counts(leaks)
    return [*lines, *leak_warnings(leaks), *copy_warnings(leaks)]
