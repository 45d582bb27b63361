"""One version in all files, and a table of tested versions that setup.cfg agrees with.

Seen to fail: with another version in CITATION.cff, without a Python in the table, with
a higher lower bound of jax.
"""

import configparser
import re

import pytest
import yaml

import t2t_jax
from tests.integration.tiny import ROOT

_SETUP = configparser.ConfigParser()
_SETUP.read(ROOT / "setup.cfg", encoding="utf-8")


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def rows_of_the_table():
    """Returns the rows of the table: Python, JAX, Flax, what was run, when."""
    text = (ROOT / "docs/reference/versions.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if "|" in line]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_every_python_of_the_classifiers_was_run():
    classifiers = _SETUP["metadata"]["classifiers"]
    declared = re.findall(r"Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    assert sorted({row[0] for row in rows_of_the_table()}) == declared
    low, high = (f"3.{int(declared[k].split('.')[1]) + k % 2}" for k in (0, -1))
    assert _SETUP["options"]["python_requires"] == f">={low},<{high}"


@pytest.mark.parametrize(("package", "column"), [("jax", 1), ("flax", 2)])
def test_the_lower_bound_was_run_and_nothing_below_it(package, column):
    required = _SETUP["options"]["install_requires"]
    bound = numbers(re.search(rf"^{package}>=([\d.]+)$", required, re.MULTILINE)[1])
    versions = [numbers(row[column]) for row in rows_of_the_table() if row[column]]
    assert min(versions)[: len(bound)] == bound


def test_the_citation_and_the_changelog_have_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (newest, *_) = re.findall(r"^## (\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    assert citation["version"] == newest == t2t_jax.__version__
    assert citation["license"] == _SETUP["metadata"]["license"]
    assert citation["repository-code"] == _SETUP["metadata"]["url"]
    assert citation["title"] in _SETUP["metadata"]["url"]
