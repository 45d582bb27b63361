"""Writes the parts of pages that follow from the code.

A line `<!-- generated: NAME -->` of a page is replaced by the result of a function
here, so that no list of flags, keys, functions or departures is kept by hand. The note
above it, for readers of the repository, is left out.
"""

import re
import textwrap
from collections.abc import Callable, Iterable

import command_line
import configuration
import paper
import python_api
from sphinx.application import Sphinx

# A page of the repository may say above it that there is nothing to see.
_NOTE = r"(?:^\*Generated when the site is built: [^*]+\*\n\n)?"
_MARKER = re.compile(
    _NOTE + r"^( *)<!-- generated: (\w+)(?: (.+?))? -->$", re.MULTILINE
)
_FUNCTIONS: dict[str, Callable[..., Iterable[str]]] = {
    "modes": command_line.modes,
    "keys": configuration.keys,
    "shipped": configuration.shipped,
    "resume": configuration.resume,
    "matches": paper.matches,
    "departures": paper.departures,
    "choices": paper.choices,
    "parsers": paper.parsers,
    "source": paper.source,
    "table3": paper.table3,
    "where": paper.where,
    "exports": python_api.exports,
    "functional": python_api.functional,
}


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = _MARKER.sub(_generated, source[0])


def _generated(marker: re.Match[str]) -> str:
    indent, name, argument = marker.groups()
    lines = _FUNCTIONS[name](*filter(None, [argument]))
    return textwrap.indent("\n".join(lines), indent)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the change of pages when they are read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
