"""Signals end a program in one line and exit code 75, also during imports.

Seen to fail: without `install_early_handlers` in main.py, with `KeyboardInterrupt` in
the place of `main._Stop`, and without `block_signals` before the exec. Where stderr is
closed: tests/faults/test_stderr.py.
"""

import os
import signal
import sys

import pytest

from t2t_jax.devices.distributed.signals import (
    STOP_SIGNALS,
    handling,
    install_early_handlers,
)
from tests.docs.commands import run, run_python
from tests.integration.tiny import ROOT

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
RUN = """
from t2t_jax import main
main._run = lambda argv: exec({code!r})
main.cli_entry_point()
"""


def start(*arguments, cwd=ROOT, code=75, **environment):
    environ = {**os.environ, **environment}
    return run([sys.executable, *arguments], cwd, code=code, environ=environ)


def signalled_at(module, number, tmp_path, *arguments):
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    environment = {
        "PYTHONPATH": str(tmp_path),
        "SIGNAL_AT": module,
        "SIGNAL": str(int(number)),
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=0",  # no exec
    }
    done = start(*arguments, cwd=tmp_path, **environment)
    assert done.stderr == f"error: Stopped by {number.name}. Rerun the same command.\n"


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("dataclasses", signal.SIGINT),
        ("t2t_jax.training.stopping", signal.SIGTERM),
        ("absl", signal.SIGUSR1),
    ],
)
def test_a_signal_during_an_import_ends_in_one_line(tmp_path, module, number):
    signalled_at(module, number, tmp_path, "-m", "t2t_jax.main", "--workdir=run")
    assert not (tmp_path / "run" / "vocab.model").exists()


def test_numpy_that_is_imported_from_c_shows_no_traceback(tmp_path):
    """It prints what it meets, and raises an ImportError that has forgotten it."""
    signalled_at("numpy", signal.SIGTERM, tmp_path, "-c", RUN.format(code="import jax"))


def test_a_signal_that_passes_through_exec_keeps_the_exit_code():
    code = "import os, signal; os.kill(os.getpid(), signal.SIGUSR1)"
    done = start("-c", RUN.format(code=code))
    assert done.stderr.count("\n") == 1, done.stderr


def test_signals_are_held_back_over_an_exec_and_then_delivered():
    script = """
import os, signal, sys
from t2t_jax.devices.distributed import signals
signals.block_signals()
os.kill(os.getpid(), signal.SIGTERM)
then = "from t2t_jax.devices.distributed.signals import install_early_handlers; "
then += "install_early_handlers(); print('late')"
os.execv(sys.executable, [sys.executable, "-c", then])
"""
    done = start("-c", script)
    assert done.stdout == ""
    assert done.stderr.startswith("error: Stopped by SIGTERM.")


def test_what_is_ignored_stays_ignored():
    with handling(signal.SIG_DFL):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        install_early_handlers()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert all(callable(signal.getsignal(number)) for number in STOP_SIGNALS[1:])


def test_a_program_that_imports_the_command_line_keeps_its_own_handlers():
    script = "import signal; before = signal.getsignal(signal.SIGINT); "
    script += "import t2t_jax.main; print(signal.getsignal(signal.SIGINT) is before)"
    assert run_python(script) == "True\n"
