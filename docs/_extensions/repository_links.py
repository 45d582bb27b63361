"""Turns links of the repository's Markdown into links of the site.

Pages are read on GitHub too, so they link to files by their paths. A link to a page, or
to a file that is a page of the site, becomes one inside the site, and one to another
file leads to GitHub. Files outside docs/, such as benchmarks/README.md, are pages as
well: in docs/ is a short text in their place, which GitHub shows. The directives of the
site's contents are in comments, which GitHub does not show.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
_DOCS = ROOT / "docs"
PROJECT = "https://github.com/t2t-jax/t2t_jax"
INCLUDED = {
    "benchmarks": "benchmarks/README.md",
    "changelog": "CHANGELOG.md",
    "explanation/security": "SECURITY.md",
    "how_to/clusters": "launch/README.md",
}
"""Page of the site -> the file that it shows."""

_PAGES = {path: f"/{page}.md" for page, path in INCLUDED.items()}
_FENCED = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^()\s#]+)(#[^()\s]*)?(?=\))")
_ABSOLUTE = re.compile(rf"(?<=\]\(){PROJECT}/blob/main/([^()\s#]+)(#[^()\s]*)?(?=\))")
_CONTENTS = re.compile(r"^<!-- (\{toctree\}\n.*?)^-->$", re.MULTILINE | re.DOTALL)
_FOR_TESTS = re.compile(r"^ *<!-- test: .* -->\n", re.MULTILINE)
_NOT_RUN = re.compile(r"^<!-- test: skip, (.*?) -->$", re.MULTILINE)


def linked(text: str, folder: Path) -> str:
    """Returns Markdown with the links of its file made links of the site.

    Args:
      folder: of the file.
    """
    parts, start = [], 0
    for fence in _FENCED.finditer(text):
        parts += [_replace(text[start : fence.start()], folder), fence.group()]
        start = fence.end()
    return "".join([*parts, _replace(text[start:], folder)])


def _replace(text: str, folder: Path) -> str:
    text = _NOT_RUN.sub(r'<p class="not-run">Not run by the tests: \1.</p>\n', text)
    text = _FOR_TESTS.sub("", text)
    text = _LINK.sub(lambda m: _target(folder / m[1], m[2] or "") or m[0], text)
    return _ABSOLUTE.sub(lambda m: _target(ROOT / m[1], m[2] or "") or m[0], text)


def _target(path: Path, anchor: str) -> str:
    """Returns where a link to a file leads; "" where there is no such file."""
    path = path.resolve()
    if not path.exists() or not path.is_relative_to(ROOT):
        return ""
    inside = str(path.relative_to(ROOT))
    if inside in _PAGES:
        return _PAGES[inside] + anchor
    if path.is_relative_to(_DOCS) and path.is_file():
        return "/" + str(path.relative_to(_DOCS)) + anchor
    return f"{PROJECT}/{'tree' if path.is_dir() else 'blob'}/main/{inside}{anchor}"


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    file = INCLUDED.get(docname)
    if file:
        source[0] = (ROOT / file).read_text(encoding="utf-8")
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        source[0] = _CONTENTS.sub(r"```\1```", source[0])
        source[0] = linked(source[0], (ROOT / file if file else page).parent)


def _leave_out(app: Sphinx, config: object) -> None:
    app.config.exclude_patterns += [f"{page}.md" for page in _missing()]


def _missing() -> set[str]:
    """Returns the pages of files that there are not."""
    return {page for page, path in INCLUDED.items() if not (ROOT / path).exists()}


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the change of pages when they are read."""
    app.connect("config-inited", _leave_out)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
