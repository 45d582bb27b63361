"""Whoever installs or clones the project gets all of it."""

import configparser
import subprocess

import pytest

from tests.integration.tiny import ROOT

_SETUP = configparser.ConfigParser()
_SETUP.read(ROOT / "setup.cfg", encoding="utf-8")


def test_every_folder_is_a_package_that_is_installed():
    listed = _SETUP["options"]["packages"].split()
    folders = {
        str(path.parent.relative_to(ROOT)).replace("/", ".")
        for path in (ROOT / "t2t_jax").rglob("*.py")
    }
    assert sorted(listed) == sorted(folders | {"t2t_jax.configs"})


def test_the_configs_are_installed_beside_the_program():
    assert "t2t_jax.configs = configs" in _SETUP["options"]["package_dir"]


def test_git_ignores_no_source():
    asked = subprocess.run(
        [
            "git",
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--",
            "*.py",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if asked.returncode:
        pytest.skip("this is no git checkout")
    ignored = [line for line in asked.stdout.splitlines() if ".venv" not in line]
    assert ignored == []


def test_the_core_needs_neither_tensorflow_nor_torch():
    core = _SETUP["options"]["install_requires"]
    assert "torch" not in core
    assert "tensorflow\n" not in core
    assert "tensorflow-datasets" in core
