"""HTML whose text is escaped by construction.

`Markup` is text that is HTML already; everything else that becomes a part of a page is
escaped, also inside the page's JSON.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_SCRIPT_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_VOID = ("br", "col", "hr", "meta")


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Returns a value as HTML text; `Markup` is returned as it is.

    Control characters and lone surrogates become U+FFFD.

    Example:
      >>> escape("<script>alert('1')</script>" + chr(0))
      '&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;�'
    """
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_CONTROL.sub("\ufffd", str(value))))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """Returns an element; its children and the values of attributes are escaped.

    Args:
      attributes: `_` at the end of a name is removed, others become `-`; None leaves
        one out, True gives it no value.

    Example:
      >>> tag("td", "a < b", class_="number", aria_label='"x"')
      '<td class="number" aria-label="&quot;x&quot;">a &lt; b</td>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Iterable[object], separator: str = "") -> Markup:
    """Joins parts, each escaped unless it is `Markup`."""
    return Markup(separator.join(map(escape, parts)))


def table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    caption: str,
    numbers: Sequence[int] = (),
    row_heads: bool = True,
) -> Markup:
    """Returns a table that scrolls sideways by itself where it is too wide.

    Args:
      caption: for screen readers.
      numbers: indices of columns that are aligned right.
      row_heads: whether the first cell of a row is its heading.
    """

    def cell(name: str, column: int, value: object, **attributes: str) -> Markup:
        kind = "number" if column in numbers else None
        return tag(name, value, class_=kind, **attributes)

    head = join(cell("th", n, name, scope="col") for n, name in enumerate(header))
    body = []
    for row in rows:
        cells = [cell("td", n, value) for n, value in enumerate(row)]
        if row_heads:
            cells[0] = cell("th", 0, row[0], scope="row")
        body.append(tag("tr", *cells))
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_="unseen"),
            tag("thead", tag("tr", head)) if any(map(str, header)) else "",
            tag("tbody", *body),
        ),
        class_="scroll",
        role="region",
        aria_label=caption,
        tabindex=0,
    )


def text(value: object, name: str = "span", **attributes: object) -> Markup:
    """Returns text of a corpus: isolated, in its own direction of writing."""
    return tag(name, value, dir="auto", **attributes)


def script_json(values: Any) -> Markup:
    """Returns JSON that cannot end the script element around it.

    Example:
      >>> print(script_json({"text": "</script>"}).replace(chr(92), "/"))
      {"text":"/u003c/script/u003e"}
    """
    written = json.dumps(values, separators=(",", ":"), allow_nan=False)
    for letter, escaped in _SCRIPT_ESCAPES.items():
        written = written.replace(letter, escaped)
    return Markup(written)


def page(
    *, title: str, header: Markup, main: Markup, data: Mapping[str, Any], about: str
) -> str:
    """Returns a whole page, with styles and scripts inside.

    A content security policy allows these by their hashes and nothing else: no request
    leaves the page, and a script in it that is not ours does not run.

    Args:
      title: of the window.
      data: JSON values for the scripts.
      about: the last line.
    """
    style = _asset("page.css")
    body = "\n".join(
        _asset(f"{name}.js")
        for name in ("dom", "scales", "charts", "samples", "attention", "start")
    )
    script = f'(() => {{\n"use strict";\n{body}}})();\n'
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src "
        f"'{_hash(script)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return _fill(
        _asset("page.html"),
        title=escape(title),
        policy=escape(policy),
        style=Markup(style),
        header=header,
        main=main,
        data=script_json(data),
        script=Markup(script),
        about=escape(about),
    )


def _fill(template: str, **parts: Markup) -> str:
    """Replaces each `{{name}}` once; what is inserted is not searched again."""
    return _PLACEHOLDER.sub(lambda match: parts[match[1]], template)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _asset(name: str) -> str:
    files = resources.files("t2t_jax.report") / "assets" / name
    return files.read_text(encoding="utf-8")
