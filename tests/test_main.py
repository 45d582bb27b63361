import errno
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_jax import errors
from t2t_jax import main as program
from t2t_jax.cli.flags import parse_argv as flags
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir
from tests.docs.commands import run as run_program
from tests.integration.tiny import ROOT

pytestmark = pytest.mark.usefixtures("empty_directory", "own_signals")


@pytest.fixture
def fake_mode(monkeypatch):
    """Lets a test say what a mode does."""

    def install(run):
        options = SimpleNamespace(
            **{"mode": "m", "is_read_only": False, "uses_jax": True},
            workdir=Workdir(Path("w")),
            checkpoint="9",
        )
        mode = SimpleNamespace(run=run)
        monkeypatch.setattr(flags, "parse_argv", lambda argv: options)
        monkeypatch.setattr(program, "import_module", lambda name: mode)

    return install


def raising(error):
    def run(options):
        raise error

    return run


def test_an_error_about_an_argument_names_the_flag_that_gave_it(fake_mode, capsys):
    problems = ["w holds no run.", "checkpoint=9 must be best.", "wider, not w."]
    fake_mode(raising(errors.DataError(problems)))
    assert main([]) == 65
    assert capsys.readouterr().err.splitlines() == [
        "error: --workdir=w holds no run.",
        "error: --checkpoint=9 must be best.",
        "error: wider, not w.",
    ]


@pytest.mark.parametrize("error", [KeyError("x"), OSError(errno.EBADF, "bad file")])
def test_a_mistake_of_the_program_is_70_and_shows_a_traceback(fake_mode, capsys, error):
    fake_mode(raising(error))
    assert main([]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_signal_that_an_extension_makes_an_import_error_of_is_a_stop(
    fake_mode, capsys
):
    def run(options):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("Encountered an error while initializing") from None

    fake_mode(run)
    assert main([]) == 75
    assert capsys.readouterr().err.startswith("error: Stopped by SIGTERM.")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_falls_where_no_exception_gets_out_is_not_lost(number):
    script = f"""
import os, signal, time
from t2t_jax import main

signal.signal(signal.SIGINT, signal.default_int_handler)

class Garbage:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0.2)

def run(argv):
    Garbage()
    time.sleep(50)
    return 0

main._run = run
main.cli_entry_point()
"""
    done = run_program([sys.executable, "-c", script], ROOT, code=75, seconds=30)
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr
