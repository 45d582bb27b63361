"""What .ci/run makes of tests that fail: once, twice, and not at all."""

import os
import shutil
import subprocess

import pytest

from tests.docs import commands
from tests.integration.tiny import ROOT
from tests.launch.programs import command

# Fails as often as a file says, and leaves the list of what failed, as pytest does.
_PYTEST = """\
echo "$(basename "$0") $*" >> "$STATE/calls"
pwd >> "$STATE/directories"
left=$(cat "$STATE/failures of ${0##*/}" 2>/dev/null || echo 0)
[[ "$*" != *--last-failed* ]] || left=$(cat "$STATE/again")
if [ "$left" != 0 ]; then
  mkdir -p .pytest_cache/v/cache
  echo '{"tests/test_a.py::test_b": true}' > .pytest_cache/v/cache/lastfailed
fi
echo "1 passed in 2.00s"
exit "$left"
"""
# Leaves a run, and the environment that the tests use.
_DEMO = f"""\
mkdir -p runs/phrasebook .venv/bin
cat > .venv/bin/pytest <<'END'
#!/usr/bin/env bash
{_PYTEST}END
chmod +x .venv/bin/pytest
echo "BLEU = 99.0"
"""


def _git(directory, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", "-C", directory, *identity, *arguments], check=True)


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout"
    (root / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", root / ".ci/run")
    (root / ".gitignore").write_text("/.ci/clone*/\n/.venv/\n/runs/\n")
    (root / "launch").mkdir()
    command(root / "launch", "demo.sh", _DEMO)
    command(root / "launch", "test.sh", _PYTEST)
    _git(root, "init", "--quiet")
    _git(root, "add", ".")
    _git(root, "commit", "--quiet", "--message=a")
    return root


@pytest.fixture
def run(checkout, tmp_path):
    def run(*, code=0, default=0, full=0, again=0):
        failures = {"failures of test.sh": default, "failures of pytest": full}
        for name, count in {**failures, "again": again}.items():
            (tmp_path / name).write_text(f"{count}\n")
        how = {"environ": {**os.environ, "STATE": str(tmp_path)}, "code": code}
        done = commands.run(["bash", checkout / ".ci/run"], ROOT, **how)
        return done, (tmp_path / "calls").read_text().splitlines()

    return run


def test_the_demo_and_then_tests_run_in_a_clone_of_long_path(run, tmp_path, checkout):
    _, calls = run()
    assert [line.split()[0] for line in calls] == ["test.sh", "pytest"]
    (clone,) = {*(tmp_path / "directories").read_text().splitlines()}
    assert len(clone) >= 100
    assert clone.startswith(str(checkout))
    # Again, with a commit more: the same clone, of the new state.
    command(checkout / "launch", "demo.sh", f"{_DEMO}echo of the new commit")
    _git(checkout, "commit", "--quiet", "--all", "--message=b")
    assert "of the new commit" in run()[0].stdout


@pytest.mark.parametrize("tier", ["default", "full"])
@pytest.mark.parametrize(("code", "again"), [(1, 0), (1, 1), (2, 0)])
def test_what_fails_runs_once_more_and_what_fails_again_fails(run, tier, code, again):
    done, calls = run(code=again if code == 1 else code, **{tier: code}, again=again)
    assert sum("--last-failed " in line for line in calls) == (code == 1)
    assert ("tests/test_a.py::test_b" in done.stdout) == (code == 1)
