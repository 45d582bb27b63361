"""What `python -m build` makes: a wheel that works alone, and an sdist with its tests.

Both are used in directories outside the checkout; what the package depends on is that
of the environment. Seen to fail: with a test of the source tree that read the installed
package instead, which has configs/ within it, without docs/ in MANIFEST.in, and without
the report's assets in the package data.
"""

import json
import os
import shutil
import sys
import tarfile
from importlib import metadata

import pytest

import t2t_jax
from tests.compiling import xla_flags
from tests.docs.commands import run
from tests.integration import tiny
from tests.integration.tiny import ROOT
from tests.made_once import made_once

# As in the site: not of the project.
_LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info"),
    *("_build", "build", "dist", "runs"),
)
_IMPORTS = """
import json
import t2t_jax
from t2t_jax.config import parse
from t2t_jax.config_files import shipped_names

for name in t2t_jax.__all__:
    getattr(t2t_jax, name)
steps = {}
for name in shipped_names():
    row = ":base" if name == "table3" else ""  # without a default
    steps[name] = parse(t2t_jax.load_config(f"{name}{row}").to_dict()).steps
print(json.dumps({"file": t2t_jax.__file__, "steps": steps}))
"""
# They read files of all folders, and need no model.
_TESTED = ("tests/configs", "-k", "not is_described")


@pytest.fixture(scope="session")
def distributions(shared_directory):
    """Holds installed/, the wheel without its dependencies, and sdist/, unpacked."""
    for package in ("build", "setuptools"):
        try:
            metadata.distribution(package)
        except metadata.PackageNotFoundError:
            pytest.skip(f"the package {package} of the extra test is not installed")
    return made_once(shared_directory / "distributions", _build)


def _build(directory):
    shutil.copytree(ROOT, directory / "copy", ignore=_LEFT_OUT)
    flags = ("--no-isolation", f"--outdir={directory}", str(directory / "copy"))
    _python("-m", "build", *flags, cwd=directory)
    shutil.rmtree(directory / "copy")
    (sdist,) = directory.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(directory, filter="data")
    (directory / sdist.name.removesuffix(".tar.gz")).rename(directory / "sdist")
    (wheel,) = directory.glob("*.whl")
    flags = ("--no-deps", "--no-index", f"--target={directory / 'installed'}")
    _python("-m", "pip", "install", "--quiet", *flags, str(wheel), cwd=directory)


def _python(*argv, cwd, path=(), stdin=""):
    """Runs Python, with these directories and without `cwd` where modules are found."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    added = {
        "XLA_FLAGS": xla_flags(1),
        **{"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(map(str, path))},
        # Doctests of the sdist's files are those of the installed package.
        "PY_IGNORE_IMPORTMISMATCH": "1",
    }
    how = {"environ": {**kept, **added}, "stdin": stdin, "seconds": 300}
    return run([sys.executable, *argv], cwd, **how).stdout


@pytest.fixture
def python(distributions, tmp_path):
    """Runs Python in an empty directory, with the package that the wheel installed."""
    installed = distributions / "installed"
    return lambda *argv, **given: _python(
        *argv, **given, cwd=tmp_path, path=[installed]
    )


def test_the_installed_package_exports_all_and_has_every_config(python, distributions):
    found = json.loads(python("-c", _IMPORTS))
    package = distributions / "installed" / "t2t_jax"
    assert found["file"] == str(package / "__init__.py")
    shipped = {path.stem for path in ROOT.glob("configs/*.py")} - {"__init__"}
    assert set(found["steps"]) == shipped
    assert found["steps"]["phrasebook"] == t2t_jax.load_config("phrasebook").steps


def test_the_installed_command_prints_its_help_and_version(python, distributions):
    command = str(distributions / "installed/bin/t2t-jax")
    assert python(command, "--version").startswith(f"t2t-jax {t2t_jax.__version__} ")
    assert "--config=" in python("-m", "t2t_jax", "--help")


def test_the_installed_package_trains_and_translates(python, tmp_path):
    few = {"steps": 2, "checkpoint__every_steps": 2, "evaluation__every_steps": 0}
    argv = tiny.arguments(tmp_path / "run", **few)
    python("-m", "t2t_jax", "--config=phrasebook", *argv)
    assert (tmp_path / "run/report.html").is_file()
    flags = ("--mode=translate", f"--workdir={tmp_path / 'run'}")
    lines = python("-m", "t2t_jax", *flags, stdin="Two men.\n\n").split("\n")
    assert (len(lines), lines[1:]) == (3, ["", ""])


def _files_of(*folders):
    found = (path for name in folders for path in (ROOT / name).rglob("*"))
    return {
        str(path.relative_to(ROOT))
        for path in found
        if path.is_file() and not {"__pycache__", "_build"} & set(path.parts)
    }


def test_the_sdist_is_the_whole_project(distributions):
    sdist = distributions / "sdist"
    found = {str(p.relative_to(sdist)) for p in sdist.rglob("*") if p.is_file()}
    top = {".ci/run", "ruff.toml", "setup.cfg", "pyproject.toml", "CITATION.cff"}
    folders = ("t2t_jax", "configs", "docs", "launch", "tests", "tools", "benchmarks")
    folders += (".github",)
    assert (_files_of(*folders) | top) - found == set()


def test_tests_of_the_sdist_pass_with_the_installed_package(distributions):
    sdist = distributions / "sdist"
    flags = ("-m", "quick and not soak", "-p", "no:xdist", "--import-mode=append")
    printed = _python(
        *("-m", "pytest", *flags, "-p", "no:cacheprovider", *_TESTED),
        cwd=sdist,
        path=[distributions / "installed", sdist],
    )
    assert " passed" in printed
