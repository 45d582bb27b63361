import subprocess

import pytest

from tests.integration.tiny import ROOT

SCRIPTS = [*sorted((ROOT / "launch").glob("*.sh")), ROOT / ".ci/run"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_valid_bash_and_stops_at_the_first_error(path):
    subprocess.run(["bash", "-n", path], check=True)
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["demo.sh", "test.sh"])
def test_a_wrong_argument_is_refused_before_anything_is_done(name, tmp_path):
    done = subprocess.run(
        ["bash", ROOT / "launch" / name, "--wrong"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=10,
    )
    assert done.returncode == 64
    assert "usage:" in done.stderr


def test_the_readme_names_the_command_that_continuous_integration_runs():
    command = "bash launch/test.sh"
    assert command in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
