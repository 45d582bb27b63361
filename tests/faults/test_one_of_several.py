"""One process of a run fails, hangs or is killed: all end, and say who and why.

Seen to fail: without `FailureMonitor.abort_all` (the others hang until JAX aborts them,
and say nothing of the cause); without `Watchdog` (a rank that sleeps is never found);
without `unresponsive_ranks` in `report_error` (a traceback of Gloo, and nobody
named).
"""

import re
import subprocess
import threading
import time

import pytest

from t2t_jax.devices.distributed.cluster import HEARTBEAT_SECONDS
from tests.faults.running import end, end_codes, finish, saved, start

again = pytest.mark.soak  # One of each kind is enough for every day.

# Of a run with a fault at step 6, which takes some seconds to get there.
SECONDS = 180
# It is the steps that are hurt.
STEPS = {"evaluation__every_steps": 0}
# No pause before step 6: the first steps after one have the time of a pause.
UNPAUSED = {**STEPS, "training__step_timeout": 10, "checkpoint__every_steps": 100}


def end_and_time(process, words):
    """Waits for the end; returns code, stderr, and the seconds since certain words."""
    lines, fell = [], time.monotonic()
    limit = threading.Timer(SECONDS, process.kill)
    limit.start()
    for line in process.stderr:
        lines.append(line.decode())
        if words in lines[-1]:
            fell = time.monotonic()
    process.communicate()  # closes both pipes
    limit.cancel()
    return process.returncode, "".join(lines), time.monotonic() - fell


@pytest.mark.parametrize("rank", [pytest.param(0, marks=again), 1])
def test_an_exception_on_one_rank_ends_all_with_its_code_and_its_cause(tmp_path, rank):
    code, said = end(
        start(tmp_path / "run", processes=2, fault=f"raise@6:{rank}", **STEPS)
    )
    assert code == 70, said
    assert end_codes(said) == {0: 70, 1: 70}
    other = 1 - rank
    assert f"[rank {rank}] FATAL Traceback" in said
    assert (
        f"[rank {other}] error: process {rank} has failed (exit code 70): "
        "RuntimeError: Injected by T2T_JAX_FAULT at step 6." in said
    )
    assert said.count("FATAL") == 1
    # The one that was begun a step before may not have ended.
    assert saved(tmp_path / "run") in ([], [5])


@pytest.mark.parametrize(
    "fault",
    [
        "kill@6:1",
        pytest.param("kill_saving@5:1", marks=again),
        pytest.param("kill@6:0", marks=again),
    ],
)
def test_where_one_rank_is_killed_the_other_ends_and_names_it(tmp_path, fault):
    workdir, rank = tmp_path / "run", int(fault[-1])
    run = start(workdir, processes=2, fault=fault, **STEPS)
    code, said, seconds = end_and_time(run, f"process {rank} ended")
    assert seconds < HEARTBEAT_SECONDS + 5
    ended = end_codes(said)
    assert ended[rank] == 137
    # By its own words, or by JAX's abort, which speaks of tasks.
    assert ended[1 - rank] in (69, 134), said
    assert code == ended[1 - rank] or code == 137
    named = rf"[Pp]rocess {rank} (of 2 has ended|cannot be reached)|task:{rank}\b"
    if rank == 0:
        named += "|[Ll]eader task was preempted/died"
    assert re.search(named, said), said
    assert "FATAL" not in said
    finish(workdir, **STEPS)
    assert saved(workdir)[-1] == 12


def test_a_rank_that_sleeps_ends_all_with_their_stacks(tmp_path):
    code, said = end(
        start(tmp_path / "run", processes=2, fault="sleep@6:1", **UNPAUSED), SECONDS
    )
    assert code == 70, said
    assert end_codes(said) == {0: 70, 1: 70}
    assert re.search(r"\[rank [01]\] FATAL This run is stuck: waiting for step", said)
    # The stack of the one that sleeps, and of the one that waits for it.
    assert "in maybe_inject_fault" in said
    assert said.count("Current thread") + said.count("Thread 0x") > 3


@again
def test_a_rank_that_is_stopped_is_cleared_away_by_the_launcher(tmp_path):
    workdir = tmp_path / "run"
    how = {"processes": 2, "fresh": True, **UNPAUSED}
    run = start(workdir, fault="stop@6:1", **how)
    code, said = end(run, SECONDS)
    assert code == 70, said
    assert end_codes(said) == {0: 70}
    assert "[rank 0] FATAL This run is stuck" in said
    assert "Current thread" in said
    found = subprocess.run(["pgrep", "-f", str(workdir)], check=False, timeout=240)
    assert found.returncode == 1
