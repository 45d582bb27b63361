"""Signals while the program is still importing: one line, no traceback, exit code 75.

Seen to fail: without `install_early_handlers` in main.py, with `KeyboardInterrupt` in
the place of `main._Stop`, and without `block_signals` before the exec.
"""

import os
import signal
import subprocess
import sys

import pytest

from t2t_jax.runtime import interrupts

# Sends a signal when a module is looked for, in the middle of the imports.
HOOK = """
import os, signal, sys

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("SIGNAL_AT") and os.environ.pop("SIGNAL_AT"):
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))

# As a terminal starts it, and not in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Signal())
"""


def _start(tmp_path, *, at, number, environment=None):
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    command = [sys.executable, "-m", "t2t_jax.main", f"--workdir={tmp_path / 'run'}"]
    return subprocess.run(
        command,
        capture_output=True,
        timeout=240,
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "SIGNAL_AT": at,
            "SIGNAL": str(int(number)),
            "GLIBC_TUNABLES": "glibc.malloc.hugetlb=0",  # no exec
            **(environment or {}),
        },
    )


@pytest.mark.parametrize(
    ("at", "number"),
    [
        ("dataclasses", signal.SIGINT),
        ("t2t_jax.cli.console.error_report", signal.SIGINT),
        ("t2t_jax.training.health.stop_signals", signal.SIGTERM),
        ("absl", signal.SIGUSR1),
        ("ml_collections", signal.SIGINT),
    ],
)
def test_a_signal_during_an_import_ends_in_one_line(tmp_path, at, number):
    done = _start(tmp_path, at=at, number=number)
    errors = done.stderr.decode()
    assert done.returncode == 75, errors
    assert errors == (f"error: Stopped by {number.name}. Rerun the same command.\n")
    assert not (tmp_path / "run" / "vocab.model").exists()


def test_a_signal_that_passes_through_exec_keeps_the_exit_code():
    script = """
import os, signal
from t2t_jax import main
main._run = lambda argv: exec("os.kill(os.getpid(), signal.SIGUSR1)")
main.cli_entry_point()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=240, check=False
    )
    assert (done.returncode, done.stderr.count(b"\n")) == (75, 1), done.stderr


def test_numpy_that_is_imported_from_c_shows_no_traceback(tmp_path):
    # Which prints what it meets, and raises an ImportError that has forgotten it.
    script = """
from t2t_jax import main

def run(argv):
    import jax

main._run = run
main.cli_entry_point()
"""
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        timeout=240,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "SIGNAL_AT": "numpy",
            "SIGNAL": str(int(signal.SIGTERM)),
        },
    )
    errors = done.stderr.decode()
    assert done.returncode == 75, errors
    assert errors == "error: Stopped by SIGTERM. Rerun the same command.\n"


def test_signals_are_held_back_over_an_exec_and_then_delivered():
    script = """
import os, signal, sys
from t2t_jax.runtime import interrupts
interrupts.block_signals()
os.kill(os.getpid(), signal.SIGTERM)
then = "from t2t_jax.runtime.interrupts import install_early_handlers; "
then += "install_early_handlers(); print('late')"
os.execv(sys.executable, [sys.executable, "-c", then])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (75, b"")
    assert done.stderr.startswith(b"error: Stopped by SIGTERM.")


def test_what_is_ignored_stays_ignored():
    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        interrupts.install_early_handlers()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert callable(signal.getsignal(signal.SIGTERM))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_program_that_imports_this_keeps_its_own_handlers():
    script = (
        "import signal\n"
        "before = signal.getsignal(signal.SIGINT)\n"
        "import t2t_jax.main\n"
        "print(signal.getsignal(signal.SIGINT) is before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=240, check=True
    )
    assert done.stdout == b"True\n"
