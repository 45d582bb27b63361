"""A disk that is full: training goes on, nothing is left behind, the end is honest.

A limit on the size of files makes every write of a running process fail, as a full disk
does, and lifting it makes room again.

Seen to fail: with the threads of TensorStore left to say what has failed, with
sacreBLEU loaded at the first evaluation (exit 70), and without the sweep before and
after a save (what failed holds its space). With `io.FileIO` in the place of
`_Unfailing`, and `say` of `Console` that may raise, the last two.
"""

import os
import resource
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.faults import running

ENOUGH = resource.RLIM_INFINITY
KEYS = {
    "steps": 240,
    "checkpoint__every_steps": 40,
    "checkpoint__keep": 9,
    "evaluation__every_steps": 100_000,  # the last step alone
    "logging__every_steps": 20,
}


def limit(process, size):
    resource.prlimit(running.fork_of(process), resource.RLIMIT_FSIZE, (size, ENOUGH))


def follow(process, seconds=300):
    """Yields the lines of stderr, and kills what does not end in time."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        for line in process.stderr:
            yield line.decode().rstrip("\n")
    finally:
        timer.cancel()


def left(workdir):
    return sorted(os.listdir(workdir / "checkpoints"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("undisturbed") / "run"
    running.finish(workdir, **KEYS)
    return workdir


def test_a_save_fails_and_a_later_one_succeeds_with_room_again(undisturbed, tmp_path):
    workdir, failed = tmp_path / "run", []
    with running.running(workdir, **KEYS) as process:
        running.wait_for(workdir / "checkpoints" / "40", process)
        limit(process, 0)
        said = []
        for line in map(running.unstamped, follow(process)):
            said.append(line)
            if line.startswith("WARNING: Step "):
                failed.append(line.split()[2])
                limit(process, ENOUGH)
        assert process.wait(timeout=240) == 0, said
    assert failed
    for step in failed:
        where = workdir / "checkpoints"
        told = f"WARNING: Step {step} could not be saved in {where}: File too large."
        assert said.count(told) == 1
        assert int(step) not in running.saved(workdir)
    assert any("a restart resumes from step " in line for line in said)
    assert not any("Traceback" in line for line in said)
    # Nothing else is missing: neither a checkpoint, nor a record, nor a bit.
    whole = [str(step) for step in range(40, 241, 40)]
    assert left(workdir) == sorted(set(whole) - set(failed))
    running.require_same(workdir, undisturbed, 240)


def test_a_full_disk_at_the_end_exits_74_and_the_next_run_saves(undisturbed, tmp_path):
    workdir = tmp_path / "run"
    with running.running(workdir, **KEYS) as process:
        running.wait_for(workdir / "checkpoints" / "40", process)
        limit(process, 0)
        said = list(follow(process))
        assert process.wait(timeout=240) == 74, said
    newest = max(running.saved(workdir))
    assert newest < 240
    place = workdir / "checkpoints"
    told = f"error: Step 240 could not be saved in {place}: File too large."
    assert f"a restart resumes from step {newest}." in said[said.index(told) + 1]
    assert not any("Saved step" in line for line in said)
    assert left(workdir) == sorted(map(str, running.saved(workdir)))
    said = running.finish(workdir, **KEYS)
    assert f"Resuming from step {newest}" in said
    running.require_same(workdir, undisturbed, 240)


@pytest.mark.soak
def test_where_stderr_lies_on_the_full_disk_too_the_run_goes_on(undisturbed, tmp_path):
    workdir, log = tmp_path / "run", tmp_path / "log"
    with log.open("wb") as stderr:
        how = {"stdout": subprocess.DEVNULL, "stderr": stderr, "fault": "stop@60"}
        process = running.start(workdir, fresh=True, **how, **KEYS)
    try:
        # It stops itself, is hindered from there, and ends without room.
        status = Path(f"/proc/{process.pid}/stat")
        running.wait_for(lambda: status.read_text().split()[2] == "T", process)
        limit(process, 1)
        process.send_signal(signal.SIGCONT)
        assert process.wait(timeout=240) == 74
    finally:
        process.kill()
        process.wait()
    assert "Compiled in " in log.read_text(encoding="utf-8")
    running.finish(workdir, **KEYS)
    running.require_same(workdir, undisturbed, 240)


@pytest.mark.soak
def test_where_the_log_of_a_rank_cannot_be_written_the_run_goes_on(tmp_path):
    workdir = tmp_path / "run"
    (workdir / "logs").mkdir(parents=True)
    (workdir / "logs" / "rank-1.log").symlink_to("/dev/full")
    running.finish(workdir, processes=2)
    assert running.saved(workdir)[-1] == 12
