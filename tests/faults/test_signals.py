"""A run that is told to stop saves, ends with 75, and goes on as if nothing had been.

Seen to fail: without `stop.should_stop` in `Turn.close`; without `pending` in
`Progress` (the evaluation is missing, and a run given up at its end counts as
complete); without `exit_on_signals` in `Run.train` (a checkpoint of step 0 would be the
only other way); without the thread of `StopRequest` (the second signal waits); without
`give` in `SharedStopRequest` (the other ranks never stop).
"""

import re
import shutil
import signal
import time

import pytest

from tests.faults.running import (
    end,
    finish,
    metrics,
    require_same,
    running,
    saved,
    start,
    wait_for,
)


def require_same_end(workdir, tiny_run):
    require_same(workdir, tiny_run, 12)
    assert "This run is complete" in finish(workdir)


# A checkpoint is due at 10 anyway; what comes between is in test_resume_exact.py.
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("term@1", marks=pytest.mark.soak),
        *("term@10", "term_evaluating@8"),
        pytest.param("term_evaluating@12", marks=pytest.mark.soak),
    ],
)
def test_a_signal_after_a_step_or_in_its_evaluation_saves_it_and_nothing_is_missing(
    tmp_path, tiny_run, fault
):
    workdir, step = tmp_path / "run", int(fault.partition("@")[2])
    said = finish(workdir, fault=fault, code=75)
    assert saved(workdir)[-1] == step
    assert f"Saved step {step}" in said
    assert "Traceback" not in said
    scored = [record["step"] for record in metrics(workdir) if "bleu" in record]
    assert step not in scored
    finish(workdir)
    require_same_end(workdir, tiny_run)


def test_before_the_first_step_there_is_nothing_to_save(tmp_path, tiny_run):
    workdir = tmp_path / "run"
    said = finish(workdir, fault="term_compiling@0", code=75)
    assert "error: Stopped by SIGTERM. Rerun the same command.\n" in said
    assert saved(workdir) == []
    finish(workdir, fault="term@5", code=75)
    # A resumed run has nothing unsaved either until its first step.
    said = finish(workdir, fault="term_compiling@5", code=75)
    assert "Stopped by SIGTERM" in said
    finish(workdir)
    require_same_end(workdir, tiny_run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_each_of_the_signals_stops_a_run(tmp_path, number):
    workdir = tmp_path / "run"
    endless = {"steps": 100_000, "evaluation__every_steps": 100_000}
    with running(workdir, **endless) as process:
        wait_for(lambda: metrics(workdir), process)
        process.send_signal(number)
        code, said = end(process)
    assert code == 75, said
    assert f"{number.name}: saving a checkpoint" in said
    assert "Traceback" not in said
    assert saved(workdir)


def test_a_run_that_was_killed_before_its_last_record_writes_it(tmp_path, tiny_run):
    workdir = shutil.copytree(tiny_run, tmp_path / "run")
    records = (workdir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    cut = "".join(f"{line}\n" for line in records[:-1])
    (workdir / "metrics.jsonl").write_text(cut, encoding="utf-8")
    finish(workdir)
    require_same_end(workdir, tiny_run)


def test_a_second_signal_leaves_at_once_and_nothing_saved_is_lost(tmp_path, tiny_run):
    workdir = tmp_path / "run"
    with running(workdir, fault="sleep_saving@5") as process:
        wait_for(lambda: 5 in saved(workdir), process)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        code, said = end(process)
    assert code == 75
    assert "SIGTERM again: exiting without saving.\n" in said
    assert time.monotonic() - began < 20  # of no end: 2 s on an idle machine
    finish(workdir)
    require_same_end(workdir, tiny_run)


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_a_signal_to_one_rank_stops_all_after_the_same_step(tmp_path, processes):
    """The others wait while one prepares the text."""
    workdir = tmp_path / "run"
    endless = {"steps": 100_000, "evaluation__every_steps": 100_000}
    fault = f"term@3:{processes - 1}"
    run = start(workdir, processes=processes, fault=fault, **endless)
    code, said = end(run, 240)
    assert code == 75, said
    ended = [line for line in said.splitlines() if line.startswith("processes.sh")]
    assert len(ended) == processes
    assert all("ended with code 75" in line for line in ended)
    (step,) = re.findall(r"Saved step ([\d,]+)", said)
    step = int(step.replace(",", ""))
    assert saved(workdir)[-1] == step
    assert said.count("Training a vocabulary") == 1
    for rank in range(processes):
        assert f"[rank {rank}] process {rank} of {processes}, coordinator 12" in said
    assert f"1 local devices of {processes}" in said
    for rank in range(1, processes):
        log = (workdir / "logs" / f"rank-{rank}.log").read_text(encoding="utf-8")
        assert f"Saved step {step:,}" in log
        assert "Preparing" not in log
        assert "parameters" in log


@pytest.mark.soak
def test_a_signal_to_one_rank_in_an_evaluation_stops_it_on_all(tmp_path):
    workdir = tmp_path / "run"
    code, said = end(start(workdir, processes=2, fault="term_evaluating@8:1"), 240)
    assert code == 75, said
    assert saved(workdir)[-1] == 8
    assert not [record for record in metrics(workdir) if "bleu" in record]
    finish(workdir)  # Several processes evaluate slowly on few cores.
    assert [r["step"] for r in metrics(workdir) if "bleu" in r] == [8, 12]
