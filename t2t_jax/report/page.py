"""Tables; and pages in one HTML file: sections of them, notes and other templates.

Templates escape whatever they insert; the page's JSON is escaped as well.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from markupsafe import Markup

from t2t_jax.files import template_environment
from t2t_jax.training.reporting.metrics_writer import utc
from t2t_jax.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SCRIPTS = ("dom", "scales", "charts", "samples", "attention", "start")


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
      rows: cells, as many a row as there are in `header`; the first is its heading.
      numbers: indices of columns that are aligned right.
      notes: lines below the table.
      text: indices of columns whose cells are sentences of a corpus.
      code: indices of columns whose cells are hashes or signatures.
      headed: whether a page shows the title, beside reading it to screen readers.
      folded: whether a page shows the rows only when the title is opened.
    """

    title: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: Sequence[int] = ()
    notes: Sequence[str] = ()
    text: Sequence[int] = ()
    code: Sequence[int] = ()
    headed: bool = False
    folded: bool = False

    template: ClassVar[str] = "table.html"


@dataclass(frozen=True)
class Note:
    """A paragraph; `kind` is `muted`, `warning` or empty."""

    line: str
    kind: str = "muted"

    template: ClassVar[str] = "note.html"


@dataclass(frozen=True)
class Block:
    """A template of its own, and its data."""

    template: str
    data: Mapping[str, Any] = field(default_factory=dict)


Part = Table | Note | Block


class Section(NamedTuple):
    """A section of a page, and the id that links lead to."""

    id: str
    title: str
    parts: Sequence[Part]


def render(
    *, title: str, header: Block, sections: Sequence[Section], data: Mapping[str, Any]
) -> str:
    """Returns a whole page, with styles and scripts inside.

    A content security policy allows these by their hashes and nothing else: the page
    makes no request, and no script of the text that it shows is run.

    Args:
      title: of the window.
      data: JSON values for the scripts.
    """
    body = "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    page = _environment().get_template("page.html")
    return page.render(
        title=title,
        header=header,
        sections=sections,
        data=data,
        style=Markup(_asset("page.css")),
        script=Markup(f'(() => {{\n"use strict";\n{body}}})();\n'),
        about=f"Written by t2t_jax {__version__} at {utc('%Y-%m-%d %H:%M UTC')}.",
    )


@cache
def _environment() -> Environment:
    environment = template_environment(
        "t2t_jax.report", autoescape=True, finalize=_clean
    )
    how = {"allow_nan": False, "separators": (",", ":")}
    environment.policies["json.dumps_kwargs"] = how
    environment.filters["sha256"] = _sha256
    return environment


def _clean(value: object) -> object:
    """Replaces control characters and lone surrogates by U+FFFD."""
    return value if isinstance(value, Markup) else _CONTROL.sub("\ufffd", str(value))


def _sha256(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _asset(name: str) -> str:
    files = resources.files("t2t_jax.report") / "assets" / name
    return files.read_text(encoding="utf-8")
