"""The site: it builds without a warning, its links lead somewhere, it needs no network.

Seen to fail: a link to a heading that is gone, an image from another host, and
formulas left to a script.
"""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.commands import run
from tests.integration.tiny import ROOT
from tests.made_once import made_once

# What a browser fetches of itself, by element and attribute.
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """Collects of a page its anchors, its links, and what a browser loads with it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values["href"])
        if values.get(_LOADED.get(tag, "")):
            self.loaded.append(values[_LOADED[tag]])


@pytest.fixture(scope="session")
def site(shared_directory):
    """The folder of the site, built as a reader builds it."""
    pytest.importorskip("sphinx_book_theme", reason="the extra docs is not installed")
    return made_once(shared_directory / "site", _build) / "html"


def _build(folder):
    done = run(["bash", "launch/docs.sh", f"--to={folder}"], ROOT, seconds=500)
    assert done.stdout.strip() == f"{folder}/html/index.html"


@pytest.fixture(scope="module")
def pages(site):
    """Maps the path of each page to what is in it."""
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_link_inside_leads_somewhere(pages):
    links = [(path, link) for path, page in pages.items() for link in page.links]
    assert [one for one in links if not _leads_somewhere(*one, pages)] == []
    assert len(links) > 1_000


def _leads_somewhere(path, link, pages):
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return parts.scheme in ("http", "https", "mailto")
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if there not in pages:
        return there.is_file()
    return not parts.fragment or unquote(parts.fragment) in pages[there].anchors


def test_nothing_is_loaded_from_another_host(pages, site):
    loaded = [link for page in pages.values() for link in page.loaded]
    assert [link for link in loaded if urlsplit(link).netloc] == []
    styles = "".join(p.read_text(encoding="utf-8") for p in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*[\"']?https?:[^)\"']*", styles) == []
