"""The generated parts of pages are what the code says, and say all of it.

Seen to fail: a default that was changed, a flag, key or name that its generator left
out, and a link from a generated part to a heading that is gone.
"""

import re
import runpy

import pytest

import t2t_jax
from t2t_jax.cli.flags.modes import MODES, flags_of
from t2t_jax.config import defaults
from t2t_jax.config_files import shipped_names
from tests.integration.tiny import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs/_generate"))
REFERENCE = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "docs/reference").rglob("*.md")
}


@pytest.mark.parametrize("page", SCRIPT["pages"](), ids=lambda page: page.stem)
def test_a_page_is_what_its_generators_yield(page):
    # Run `python docs/_generate`, or launch/docs.sh, and commit what it writes.
    assert page.read_text(encoding="utf-8") == SCRIPT["generated"](page)


def test_the_reference_has_every_flag_of_every_mode():
    parts = re.split(r"^## (\w+)$", REFERENCE["command_line.md"], flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert [*sections] == [*MODES]
    for mode, text in sections.items():
        shown = re.findall(r"^- \*\*`--(\w+)", text, re.MULTILINE)
        assert set(shown) - {"config"} == set(flags_of(mode))


def test_the_reference_has_every_key_and_every_shipped_configuration():
    keys = re.findall(r"^### `(.+)`$", REFERENCE["configuration.md"], re.MULTILINE)
    assert sorted(keys) == sorted(defaults())
    shown = re.findall(r"^## (\w+)$", REFERENCE["shipped.md"], re.MULTILINE)
    assert shown == shipped_names()


def test_the_reference_has_everything_that_is_exported():
    pages = "".join(REFERENCE.values())
    shown = re.findall(r"^### `t2t_jax\.(\w+)`$", pages, re.MULTILINE)
    assert sorted(shown) == sorted(t2t_jax.LAZY_EXPORTS)
    assert "### `attention`\n" in REFERENCE["functional.md"]
