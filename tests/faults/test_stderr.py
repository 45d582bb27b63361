"""A program that nobody listens to any more does what it does, and ends with its code.

Seen to fail: without `make_stderr_robust` in `main.cli_entry_point`; without `suppress`
in `write_stderr`.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests.docs.commands import run
from tests.faults import running
from tests.integration import tiny


@pytest.mark.parametrize("redirection", ["2> >(exec true)", "2>/dev/full", "2>&-"])
@pytest.mark.parametrize(
    ("flag", "code"), [("--stpes=3", 64), ("--config.stpes=3", 78)]
)
def test_a_mistake_has_its_exit_code(redirection, flag, code):
    command = f'"$0" -m t2t_jax.main {flag} {redirection}'
    run(["bash", "-c", command, sys.executable], tiny.ROOT, code=code)


@contextmanager
def unheard(workdir, fault, **changed):
    """Starts a run; yields it with the end of its stderr that is to be closed."""
    reader, writer = os.pipe()
    streams = {"stdout": subprocess.DEVNULL, "stderr": writer}
    process = running.start(workdir, fault=fault, **streams, **changed)
    os.close(writer)
    try:
        yield process, reader
    finally:
        process.kill()
        process.wait()


def test_a_signal_ends_what_compiles_unheard(tmp_path):
    with unheard(tmp_path / "run", "sleep_compiling@0") as (process, reader):
        said = b""
        while b" parameters" not in said:
            more = os.read(reader, 4096)
            assert more, said
            said += more
        time.sleep(1)
        os.close(reader)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=240) == 75


def test_a_run_that_hangs_unheard_is_ended(tmp_path):
    slow = {"training__step_timeout": 5, "checkpoint__every_steps": 0}
    with unheard(tmp_path / "run", "sleep@6", **slow) as (process, reader):
        running.wait_for(lambda: running.last_step(tmp_path / "run"), process)
        os.close(reader)
        assert process.wait(timeout=240) == 70
