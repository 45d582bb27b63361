"""Every name in the map of the paper exists, and nothing of the paper is left out."""

import re
from importlib import import_module

import pytest

from t2t_jax.config import Config, keys, sections
from t2t_jax.run.description.departures import departures
from tests.integration.tiny import ROOT

_PAGE = (ROOT / "docs/explanation/paper/index.md").read_text(encoding="utf-8")
_MAP = _PAGE[_PAGE.index("## Where each part is") : _PAGE.index("## How to read")]
SYMBOLS = re.findall(r"\[`(\w+)`\]\([./]*(t2t_jax/[\w/]+)\.py\)", _MAP)
KEYS = re.findall(r"`(?:config\.)?([a-z]+(?:\.\w+)?)`(?!\])", _MAP)


def test_the_map_covers_the_paper():
    parts = {"§3", "§3.1", "§3.2.1", "§3.2.2", "§3.2.3", "§3.3", "§3.4", "§3.5", "§4"}
    parts |= {"§5.1", "§5.2", "§5.3", "§5.4", "§6.1", "§6.2", "§6.3"}
    parts |= {*(f"equation {n}" for n in range(1, 4)), "Figure 1", "Figure 2"}
    parts |= {*(f"Table {n}" for n in range(1, 5)), "Figures 3 to 5", "ootnote 4"}
    assert {part for part in parts if part not in _MAP} == set()
    assert len(SYMBOLS) > 20


@pytest.mark.parametrize(("name", "path"), SYMBOLS)
def test_every_symbol_imports(name, path):
    assert hasattr(import_module(path.replace("/", ".")), name)


def test_every_key_and_every_departure_is_there():
    assert set(KEYS) <= {*keys(), *sections(), "architecture", "steps"}
    named = re.findall(r"\| ([^|`\[]+) \|$", _MAP, re.MULTILINE)
    found = {name for cell in named for name in cell.split(", ")}
    known = {departure.name for departure in departures(Config())}
    assert found - {"tests", "otherwise by default"} == known
