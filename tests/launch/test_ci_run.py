"""What .ci/run makes of tests that fail: once, twice, and not at all."""

import shutil
import subprocess

import pytest

from tests.integration.tiny import ROOT
from tests.launch.programs import command

# Fails as often as a file says, and leaves the list of what failed, as pytest does.
_PYTEST = """\
echo "$(basename "$0") $*" >> calls
left=$(cat "failures of ${0##*/}" 2>/dev/null || echo 0)
[[ "$*" != *--last-failed* ]] || left=$(cat again)
if [ "$left" != 0 ]; then
  mkdir -p .pytest_cache/v/cache
  echo '{"tests/test_a.py::test_b": true}' > .pytest_cache/v/cache/lastfailed
fi
exit "$left"
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / ".venv").mkdir()
    command(tmp_path / ".venv/bin", "pytest", _PYTEST)
    (tmp_path / "launch").mkdir()
    command(tmp_path / "launch", "test.sh", _PYTEST)

    def run(*, default=0, full=0, again=0):
        for name, code in {
            "failures of test.sh": default,
            "failures of pytest": full,
            "again": again,
        }.items():
            (tmp_path / name).write_text(f"{code}\n")
        done = subprocess.run(
            ["bash", tmp_path / ".ci/run"],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        return done, (tmp_path / "calls").read_text().splitlines()

    return run


def test_what_passes_runs_once(run):
    done, calls = run()
    assert done.returncode == 0
    assert [line.split()[0] for line in calls] == ["test.sh", "pytest"]
    assert "===" not in done.stdout


@pytest.mark.parametrize(
    ("tier", "selection"),
    [("default", "not soak and not full"), ("full", "full and not soak")],
)
def test_what_fails_once_runs_once_more_which_is_said(run, tier, selection):
    done, calls = run(**{tier: 1})
    assert done.returncode == 0, done.stderr
    assert len(calls) == 3
    (again,) = (line for line in calls if "--last-failed " in line)
    assert again.endswith(f"--last-failed-no-failures=none -m {selection}")
    assert "tests/test_a.py::test_b" in done.stdout
    assert "passed, but some tests only when they ran once more" in done.stdout


@pytest.mark.parametrize("tier", ["default", "full"])
@pytest.mark.parametrize(("code", "again"), [(1, 1), (2, 0), (3, 0)])
def test_what_fails_again_or_for_another_reason_fails(run, tier, code, again):
    done, calls = run(**{tier: code}, again=again)
    assert done.returncode == code
    assert sum("--last-failed " in line for line in calls) == (code == 1)
    assert "passed, but" not in done.stdout


def test_lint_that_fails_fails_at_once(run, tmp_path):
    command(tmp_path / "launch", "test.sh", 'echo "$0" >> calls; exit 1')
    old = tmp_path / ".pytest_cache/v/cache/lastfailed"
    old.parent.mkdir(parents=True)
    old.write_text('{"of another day": true}')
    done, calls = run()
    assert done.returncode == 1
    assert len(calls) == 1
