"""What README.md shows is run as printed."""

import re
import subprocess
import sys

import pytest

from tests.integration.tiny import ROOT, environment

README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.usefixtures("compiled_as_for_users")
def test_the_python_script_runs_as_printed():
    script, *_ = _blocks("python")
    assert len(script.strip().splitlines()) <= 15
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The comment behind print is what it prints.
    assert done.stdout.strip() == re.search(r"print\(.*#\s*(.*)", script)[1]


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_every_link_into_the_repository_leads_somewhere(target):
    assert (ROOT / target).exists()


def test_every_flag_and_mode_it_names_exists():
    from t2t_jax.cli.modes import MODES
    from t2t_jax.cli.usage import usage
    from t2t_jax.config import keys

    for mode in re.findall(r"--mode=(\w+)", README):
        assert mode in MODES
    for key in re.findall(r"--config\.([a-z_.]+)", README):
        assert key in keys()
    for flag in re.findall(r"--([a-z_]+)=", README):
        assert f"--{flag} " in usage() or flag == "config"
