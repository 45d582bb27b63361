import base64
import hashlib
import html.parser
import json
import re

import pytest

from t2t_jax.report.markup import Markup, escape, page, script_json, table, tag, text
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


def make_page(**changed):
    parts = {
        "title": HOSTILE,
        "header": tag("h1", HOSTILE),
        "main": tag("p", HOSTILE),
        "data": {"text": HOSTILE},
        "about": HOSTILE,
        **changed,
    }
    return page(**parts)


@pytest.mark.parametrize("make", [escape, text, lambda t: tag("a", t, title=t)])
def test_text_is_never_markup(make):
    assert "<script" not in make(HOSTILE)
    assert "\x00" not in make(HOSTILE)
    assert make(HOSTILE).encode()  # no lone surrogates


def test_markup_is_not_escaped_twice():
    assert tag("p", tag("b", "<")) == "<p><b>&lt;</b></p>"
    assert isinstance(tag("p"), Markup)


def test_a_table_is_named_and_can_be_scrolled_by_keyboard():
    made = table(("a", "b"), [("<x>", 3)], caption="Numbers", numbers=(1,))
    assert '<th scope="row">&lt;x&gt;</th><td class="number">3</td>' in made
    assert 'role="region" aria-label="Numbers" tabindex="0"' in made


def test_json_in_a_page_is_the_same_and_ends_nothing():
    written = script_json({"text": HOSTILE})
    assert json.loads(written) == {"text": HOSTILE}
    for danger in ("<", ">", "&", "\u2028", "\ud800"):
        assert danger not in written


def test_json_that_browsers_refuse_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json({"loss": float("nan")})


def test_hostile_text_adds_no_element_and_no_script():
    hostile, calm = (read(make_page(**c)) for c in ({}, {"title": "", "about": ""}))
    assert [name for name, _ in hostile.tags] == [name for name, _ in calm.tags]
    assert len(hostile.scripts) == 2
    assert "{{" not in make_page()


def test_text_that_looks_like_a_placeholder_is_text():
    assert "<p>{{script}}</p>" in make_page(main=tag("p", "{{script}}"))


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
    assert set(links) == {"data:,", "#main"}
    hosts = set(re.findall(r"https?://[^\"'\s)]+", written))
    assert hosts == {"http://www.w3.org/2000/svg"}  # a name, which nothing fetches
    assert "@import" not in written
    assert "url(" not in written.replace("url(#${clip})", "")
