"""Whoever installs or clones the project gets all of it."""

import configparser
import subprocess
import sys

import pytest

from tests.integration.tiny import ROOT

_SETUP = configparser.ConfigParser()
_SETUP.read(ROOT / "setup.cfg", encoding="utf-8")


def test_every_folder_is_found_as_a_package():
    assert _SETUP["options"]["packages"] == "find:"
    folders = {path.parent for path in (ROOT / "t2t_jax").rglob("*.py")}
    # find: goes into folders with an __init__.py only.
    assert [str(path) for path in folders if not (path / "__init__.py").is_file()] == []
    included = _SETUP["options.packages.find"]["include"].split()
    assert included == ["t2t_jax", "t2t_jax.*"]


def test_the_configs_are_installed_beside_the_program():
    assert "t2t_jax.configs = configs" in _SETUP["options"]["package_dir"]
    # In a clone this package is empty: find: has to see it.
    files = (ROOT / "t2t_jax" / "configs").glob("*.py")
    assert [path.name for path in files] == ["__init__.py"]


def test_what_is_built_is_the_whole_program(tmp_path):
    pytest.importorskip("setuptools")
    build = (sys.executable, "-c", "from setuptools import setup; setup()", "-q")
    where = ("build_py", f"--build-lib={tmp_path}")
    subprocess.run([*build, *where], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    program = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "t2t_jax").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    configs = {f"t2t_jax/configs/{path.name}" for path in ROOT.glob("configs/*.py")}
    assert found == program | configs
    assert {"t2t_jax/py.typed", "t2t_jax/exchange/templates/model_card.md"} <= found


def test_the_core_needs_neither_tensorflow_nor_torch():
    core = _SETUP["options"]["install_requires"]
    assert "torch" not in core
    assert "tensorflow\n" not in core
    assert "tensorflow-datasets" in core
