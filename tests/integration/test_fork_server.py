"""A fork gives what a start gives. Seen to fail: with exit code 0 for every fork."""

import signal
import subprocess

import pytest

from tests.integration import tiny


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--stpes=3"],
        ["--config.stpes=3"],
        ["--mode=translate", "--workdir=no/such"],
    ],
    ids=" ".join,
)
def test_a_fork_ends_as_a_start_of_its_own(argv):
    one, other = (tiny.run(*argv, stdin=b"Two men.\n", fresh=k) for k in (False, True))
    assert one.returncode == other.returncode
    assert (one.stdout, one.stderr) == (other.stdout, other.stderr)


def test_a_fork_is_killed_by_a_signal_and_by_its_timeout(tmp_path):
    argv = tiny.arguments(tmp_path / "run")
    killed = tiny.run(*argv, fault="kill_compiling@0")
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(subprocess.TimeoutExpired):
        tiny.run(*argv, fault="sleep_compiling@0", timeout=3)
    assert tiny.run("--help").returncode == 0


def test_what_is_read_by_imports_is_not_forked(tmp_path, monkeypatch):
    (tmp_path / "t2t_jax.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert tiny.run("--help").returncode != 0
