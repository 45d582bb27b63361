"""Whoever installs or clones the project gets all of it."""

import configparser
import subprocess
import sys

import pytest

from tests.integration.tiny import ROOT

_SETUP = configparser.ConfigParser()
_SETUP.read(ROOT / "setup.cfg", encoding="utf-8")


def test_what_is_built_is_the_whole_program_and_the_configs_beside_it(tmp_path):
    # Every folder has an __init__.py, or find: does not go into it.
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
