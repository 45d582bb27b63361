"""Writes the parts of the documents' pages that follow from the code.

    python docs/_generate

Between `<!-- generated: NAME -->` and `<!-- end -->` a page has what a function here
yields, as Markdown that GitHub shows and that the site is built from. So no list of
flags, keys, functions or departures is kept by hand.
"""

import os
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

import command_line
import configuration
import paper
import python_api

ROOT = Path(__file__).parents[2]
PARTS = re.compile(
    r"^( *)<!-- generated: (\w+)(?: ([^\n]+?))? -->$"
    r"(?:(?:(?!<!-- generated).)*?^\1<!-- end -->$)?",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\]\((/[^)#\s]+)(#[^)\s]*)?\)")
_BLANK = re.compile(r"(^```.*?^```$)|\n{3,}", re.MULTILINE | re.DOTALL)
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
    "axes": python_api.axes,
    "exports": python_api.exports,
    "functional": python_api.functional,
}


def pages() -> list[Path]:
    """Returns the pages with generated parts."""
    found = sorted((ROOT / "docs").glob("[!_]*/**/*.md"))
    return [page for page in found if PARTS.search(page.read_text(encoding="utf-8"))]


def generated(page: Path) -> str:
    """Returns the text of a page with its generated parts as the code has them."""

    def part(found: re.Match[str]) -> str:
        indent, name, argument = found.groups()
        text = "\n".join(_FUNCTIONS[name](*filter(None, [argument])))
        text = _LINK.sub(lambda link: _relative(link, page), text.strip("\n"))
        marker = f"<!-- generated: {name}{f' {argument}' if argument else ''} -->"
        whole = f"{marker}\n\n{text}\n\n<!-- end -->"
        whole = _BLANK.sub(lambda blank: blank[1] or "\n\n", whole)
        return textwrap.indent(whole, indent)

    return PARTS.sub(part, page.read_text(encoding="utf-8"))


def _relative(link: re.Match[str], page: Path) -> str:
    """Returns a link from the root of the repository as one from a page."""
    path, anchor = ROOT / link[1][1:], link[2] or ""
    if path == page and anchor:
        return f"]({anchor})"
    return f"]({Path(os.path.relpath(path, page.parent)).as_posix()}{anchor})"


if __name__ == "__main__":
    for changed in pages():
        text = generated(changed)
        if text != changed.read_text(encoding="utf-8"):
            changed.write_text(text, encoding="utf-8")
            print(f"{changed.relative_to(ROOT)} is written anew.")
