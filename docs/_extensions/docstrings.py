"""Lets autodoc read the docstrings of this package, which are nearly Markdown."""

import re
from collections import namedtuple
from typing import Any

from sphinx.application import Sphinx

_FENCE = re.compile(r"``(?=\S)|\*(?=\*?\w)|(?<=\w)_(?=[\s.,;:)]|$)")

_FIELD = type(namedtuple("_Tuple", "field").field)
_RESULT = re.compile(r"^  (\w+): ")


def _escape(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escapes what reStructuredText would take for markup, outside of examples."""
    for number, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = re.split(r"(`[^`]*`)", line)
        parts[::2] = [_FENCE.sub(r"\\\g<0>", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def _list_results(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Makes a section Returns with several names a list, as napoleon expects one."""
    if "Returns:" not in lines:
        return
    start = end = lines.index("Returns:") + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
        end += 1
    section = lines[start:end]
    if sum(bool(_RESULT.match(line)) for line in section) > 1:
        lines[start:end] = [_RESULT.sub(r"  * *\1*, ", line) for line in section]


def _parseable(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, *signature: str | None
) -> tuple[str | None, ...]:
    """Writes defaults that are made by a function so that Sphinx can read them."""
    arguments, result = signature
    if arguments and "<factory>" in arguments:
        arguments = re.sub(r"~[\w.]+\.", "", arguments).replace("<factory>", "...")
    return arguments, result


def _no_fields_of_tuples(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leaves out the fields of named tuples, which the docstring of the tuple lists."""
    return True if isinstance(obj, _FIELD) else None


def _only_modules_with_source(app: Sphinx, env: Any) -> None:
    """Removes what viewcode would list without a page, as built-in types."""
    known = getattr(env, "_viewcode_modules", {})
    for name in [name for name, found in known.items() if not found]:
        del known[name]


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the change of docstrings, before napoleon's."""
    app.connect("env-check-consistency", _only_modules_with_source)
    app.connect("autodoc-skip-member", _no_fields_of_tuples)
    app.connect("autodoc-process-signature", _parseable)
    app.connect("autodoc-process-docstring", _list_results, priority=300)
    app.connect("autodoc-process-docstring", _escape, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
