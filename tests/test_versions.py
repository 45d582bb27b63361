"""One version in all files, and a table of tested versions that setup.cfg agrees with.

Seen to fail: with another version in CITATION.cff, without a Python in the table, with
a higher lower bound of jax.
"""

import configparser
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
import yaml

import t2t_jax
from tests.integration.tiny import ROOT

_BUILD = """
import sys
from setuptools import build_meta
build_meta.build_sdist(sys.argv[1])
"""
_SETUP = configparser.ConfigParser()
_SETUP.read(ROOT / "setup.cfg", encoding="utf-8")


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def rows_of_the_table():
    """Returns the rows of the table: Python, JAX, Flax, what was run, when."""
    text = (ROOT / "docs/reference/versions.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if "|" in line]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def lower_bound(package):
    required = _SETUP["options"]["install_requires"]
    return re.search(rf"^{package}>=([\d.]+)$", required, re.MULTILINE)[1]


def test_every_python_of_the_classifiers_was_run():
    classifiers = _SETUP["metadata"]["classifiers"]
    declared = re.findall(r"Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    assert sorted({row[0] for row in rows_of_the_table()}) == declared
    low, high = (f"3.{int(declared[k].split('.')[1]) + k % 2}" for k in (0, -1))
    assert _SETUP["options"]["python_requires"] == f">={low},<{high}"


@pytest.mark.parametrize(("package", "column"), [("jax", 1), ("flax", 2)])
def test_the_lower_bound_was_run_and_nothing_below_it(package, column):
    bound = numbers(lower_bound(package))
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


def test_the_forms_of_issues_are_what_they_should_be():
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*_*.yml"))
    assert len(forms) == 2
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= set(form)
        names = [part["id"] for part in form["body"]]
        assert len(set(names)) == len(names) > 1
        assert form["body"][0]["validations"]["required"]


def project_files(*folders):
    found = (path for name in folders for path in (ROOT / name).rglob("*"))
    return {
        str(path.relative_to(ROOT))
        for path in found
        if path.is_file() and not {"__pycache__", "_build"} & set(path.parts)
    }


def test_the_sdist_is_the_whole_project_with_its_tests(tmp_path):
    """What the wheel holds, tests/architecture/test_packaging.py tests."""
    pytest.importorskip("setuptools")
    left_out = shutil.ignore_patterns(
        *(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info"),
        *("_build", "build", "dist", "runs"),
    )
    shutil.copytree(ROOT, tmp_path / "copy", ignore=left_out)
    subprocess.run(
        [sys.executable, "-c", _BUILD, str(tmp_path)],
        cwd=tmp_path / "copy",
        check=True,
        capture_output=True,
        timeout=240,
    )
    (sdist,) = tmp_path.glob("*.tar.gz")
    # Older versions of setuptools write a hyphen.
    assert sdist.name.replace("-", "_", 1) == f"t2t_jax-{t2t_jax.__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        files = [one.name for one in archive.getmembers() if one.isfile()]
    found = {name.partition("/")[2] for name in files}
    top = {".ci/run", "ruff.toml", "setup.cfg", "pyproject.toml", "CITATION.cff"}
    folders = ("t2t_jax", "configs", "docs", "launch", "tests", "benchmarks", ".github")
    assert (project_files(*folders) | top) - found == set()
