import base64
import hashlib
import html.parser
import json
import re

from t2t_jax.report.page import Block, Note, Section, Table, render
from tests.report.made_up_run import HOSTILE


class Reader(html.parser.HTMLParser):
    """Collects the elements of a page, and the content of its scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self.styles, self.meta = [], [], [], {}
        self._inside = ""

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))
        self._inside = name
        if name == "script":
            self.scripts.append("")
        if name == "meta" and "http-equiv" in dict(attributes):
            self.meta = dict(attributes)

    def handle_endtag(self, name):
        self._inside = ""

    def handle_data(self, content):
        if self._inside == "script":
            self.scripts[-1] += content
        elif self._inside == "style":
            self.styles.append(content)


def read(written):
    reader = Reader()
    reader.feed(written)
    return reader


def make_page(text=HOSTILE, *, data=None):
    """A page with text in every place that takes some."""
    parts = [
        Note(text),
        Table(text, (text, "b"), [(text, text)], text=(0,), notes=[text], headed=True),
        Table("Folded", ("a",), [(text,)], code=(0,), folded=True),
    ]
    return render(
        title=text,
        header=Block("names_header.html", {"about": text, "names": [text]}),
        sections=[Section("one", text, parts)],
        data=data or {"text": text},
    )


def test_json_ends_no_script():
    (written,) = re.findall(r'id="page-data">(.*)</script>', make_page())
    for danger in ("<", ">", "&", "\u2028", "\ud800"):
        assert danger not in written


def test_hostile_text_adds_no_element_and_no_script():
    page = make_page()
    hostile, calm = read(page), read(make_page("x {{ script }}"))
    assert [name for name, _ in hostile.tags] == [name for name, _ in calm.tags]
    assert len(hostile.scripts) == 2
    assert json.loads(hostile.scripts[0]) == {"text": HOSTILE}
    assert "\x00" not in page
    assert page.encode()  # no lone surrogates


def test_the_policy_allows_exactly_the_style_and_the_script_inside():
    reader = read(make_page())
    allowed = re.findall(r"'sha256-([^']+)'", reader.meta["content"])
    inside = [reader.styles[0], reader.scripts[1]]
    assert allowed == [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in inside
    ]
    assert "default-src 'none'" in reader.meta["content"]


def test_a_page_names_no_other_host():
    written = make_page()
    links = [
        value
        for _, attributes in read(written).tags
        for name, value in attributes.items()
        if name in ("src", "href", "action")
    ]
    assert set(links) == {"data:,", "#main", "#one"}
    hosts = set(re.findall(r"https?://[^\"'\s)]+", written))
    assert hosts == {"http://www.w3.org/2000/svg"}  # a name, which nothing fetches
    assert "@import" not in written
    assert "url(" not in written.replace("url(#${clip})", "")
