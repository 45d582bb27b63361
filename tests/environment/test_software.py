import configparser
from pathlib import Path

import pytest

from t2t_jax.environment import software
from t2t_jax.environment.software import (
    PURPOSES,
    TESTED,
    check_software,
    parse_requirements,
    version_numbers,
)

SETUP = configparser.ConfigParser()
SETUP.read(Path(__file__).parents[2] / "setup.cfg")
REQUIRED = parse_requirements(SETUP["options"]["install_requires"].strip().splitlines())


def checks(installed):
    return {(c.group, c.name): c for c in check_software(installed=installed)}


def test_every_extra_of_setup_cfg_has_a_purpose():
    assert set(PURPOSES) == set(SETUP["options.extras_require"])


def test_the_tested_versions_are_in_the_bounds_of_setup_cfg():
    bounds = {one.name.lower(): one.least for one in REQUIRED}
    assert TESTED.keys() - {"python"} <= bounds.keys()
    for name, versions in TESTED.items():
        for version in versions if name != "python" else ():
            assert version_numbers(version) >= version_numbers(bounds[name])
    classifiers = SETUP["metadata"]["classifiers"]
    assert all(f"Python :: {one}" in classifiers for one in TESTED["python"])


def test_a_missing_an_old_and_an_unknown_package():
    versions = {"flax": "", "numpy": "1.26.4", "jax": "0.99.1"}
    found = checks(lambda name: versions.get(name, "99.1"))
    flax, numpy, jax = (found["versions", name] for name in versions)
    assert (flax.status, numpy.status, jax.status) == ("error", "error", "warning")
    assert flax.message == "flax is not installed"
    assert flax.advice.startswith("Run pip install 'flax>=")
    assert numpy.message == "numpy 1.26.4 must be at least 2.0"
    assert "jax==0.10.2" in jax.advice
    assert found["versions", "optax"].status == "ok"


def test_extras_name_what_they_are_for_and_what_is_missing():
    found = checks(
        lambda name: {"matplotlib": "", "sacremoses": "0.0.1"}.get(name, "99")
    )
    plots, paper, export = (found["extras", n] for n in ("plots", "paper", "export"))
    assert plots.message.endswith("figures: not installed: matplotlib")
    assert (plots.status, plots.details["missing"]) == ("ok", ["matplotlib"])
    assert "pip install 't2t-jax[plots]'" in plots.advice
    assert (paper.status, export.status) == ("warning", "ok")
    assert "too old: sacremoses 0.0.1" in paper.message
    assert (export.message.split(": ")[-1], export.advice) == ("installed", "")


def test_what_this_python_cannot_have_is_not_missing(monkeypatch):
    monkeypatch.setattr(
        software.metadata,
        "requires",
        lambda _: [
            'pymarian>=1.12.42; (python_version < "3.13" and sys_platform == "linux")'
            ' and extra == "bench"',
            'torch>=2.13; extra == "bench"',
        ],
    )
    for python, missing in (("3.12.9", ["pymarian"]), ("3.13.0", [])):
        monkeypatch.setattr(
            software.platform, "python_version", lambda python=python: python
        )
        found = checks(lambda name: "" if name == "pymarian" else "99")
        assert found["extras", "bench"].details["missing"] == missing


@pytest.mark.parametrize(
    ("extra", "plugin"), [("cuda", "jax-cuda12-plugin"), ("tpu", "libtpu")]
)
def test_jax_alone_is_not_jax_for_an_accelerator(extra, plugin):
    without = checks(lambda name: "" if name == plugin else "99")
    assert without["extras", extra].details["missing"]
    assert not checks(lambda name: "99")["extras", extra].details["missing"]
