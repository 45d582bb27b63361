"""The status of a run, from the files that it has written."""

import fcntl
import json
import os
import socket
import sys
import threading
from datetime import UTC, datetime

import pytest

from t2t_jax.config import Config
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.run.status import read_status
from t2t_jax.run.workdir import Workdir
from tests.docs.commands import run
from tests.integration.tiny import ROOT

BEGAN = datetime(2026, 11, 23, 1, 0, tzinfo=UTC).timestamp()


def time_of(seconds):
    return datetime.fromtimestamp(BEGAN + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def train(step, loss, *, at, elapsed=None):
    return {
        "step": step,
        "kind": "train",
        "loss": loss,
        "epoch": 2,
        "target_tokens_per_second": 1_234.5,
        "time": time_of(at),
        "elapsed": at if elapsed is None else elapsed,
    }


def evaluation(step, bleu, *, at):
    scores = {"bleu": bleu} if bleu is not None else {"bleu_skipped": "why"}
    times = {"time": time_of(at), "elapsed": at}
    return {"step": step, "kind": "eval", "loss": 1.5, **scores, **times}


TRAINED = [train(50, 8.0, at=10), train(100, 4.0, at=60), train(150, 2.0, at=110)]


@pytest.fixture
def make_run(tmp_path):
    """Returns a function that writes the files of a run."""

    def make(*records, checkpoint=None, kinds=("periodic",), lock="", **meta):
        workdir = Workdir(tmp_path / "run")
        workdir.path.mkdir()
        workdir.write_config(Config(steps=500))
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (workdir.path / "metrics.jsonl").write_text(lines + '{"step": 9, "ki')
        if lock:
            workdir.lock_path.write_text(lock)
        if checkpoint:
            folder = workdir.checkpoints / str(checkpoint) / "meta"
            folder.mkdir(parents=True)
            (folder / "metadata").write_text(json.dumps({"kinds": kinds, **meta}))
        return workdir

    return make


def test_a_running_run_has_its_owner_its_rate_and_its_end(make_run):
    workdir = make_run(*TRAINED, evaluation(150, 7.5, at=112))
    with workdir.locked():
        owner = workdir.lock_path.read_text().split("since")[0]
        statuses = []
        for began in (0, 118):  # the run, and one that has resumed it
            since = datetime.fromtimestamp(BEGAN + began)  # local time, as it writes it
            workdir.lock_path.write_text(f"{owner}since {since}.0")
            statuses.append(read_status(workdir, now=BEGAN + 120))
    status = statuses[0]
    assert statuses[1]["seconds_left"] == 350 - 2
    assert (status["state"], status["step"], status["percent"]) == ("running", 150, 30)
    holder = status["holder"]
    assert (holder["process"], holder["host"]) == (os.getpid(), socket.gethostname())
    assert holder["is_verified"]
    # 100 steps took 100 s; 350 are left, and the last record is 8 s old.
    assert status["seconds_per_step"] == 1.0
    assert status["seconds_left"] == 350 - 8
    assert status["losses"] == [8.0, 4.0, 2.0]
    assert status["evaluation"]["bleu"] == status["best"]["bleu"] == 7.5


@pytest.mark.parametrize("elapsed", [20, 170])
def test_a_rate_is_that_of_the_last_process(make_run, elapsed):
    """Also where that process has run for longer than the one before."""
    resumed = [
        train(200, 1.5, at=1_000, elapsed=elapsed),
        train(250, 1.0, at=1_200, elapsed=elapsed + 200),
    ]
    resumed[1]["wall_seconds"] = {"training": elapsed + 50, "saving": 50}
    later = resumed[1] | {"kind": "eval", "seconds": 30.0, "elapsed": elapsed + 240}
    status = read_status(make_run(*TRAINED, *resumed, later))
    assert status["seconds_per_step"] == 4.0
    wall = status["wall_seconds"]
    assert (wall["starting"], wall["evaluating"]) == (100, 30)
    # The 10 s between both records were training.
    assert status["goodput"] == round((elapsed + 60) / (elapsed + 240), 4)


def test_what_is_not_locked_does_not_run(make_run):
    lock = f"process 17 on {socket.gethostname()} since 2026-11-23 01:00:00.123"
    workdir = make_run(*TRAINED, checkpoint=100, lock=lock)
    status = read_status(workdir, now=BEGAN + 115)
    assert (status["state"], status["holder"]) == ("interrupted", None)
    assert "kill -9; training resumes at step 100" in status["reason"]
    assert (status["seconds_left"], status["checkpoint"]) == (None, 100)


def test_a_run_of_another_host_may_run_as_long_as_it_writes_records(make_run):
    lock = "process 17 on elsewhere since 2026-11-23 01:00:00.123"
    workdir = make_run(*TRAINED, lock=lock)
    status = read_status(workdir, now=BEGAN + 115)
    assert status["state"] == "running"
    assert status["holder"] == {
        "process": 17,
        "host": "elsewhere",
        "since": "2026-11-23 01:00:00",
        "is_verified": False,
    }
    assert read_status(workdir, now=BEGAN + 4_000)["state"] == "interrupted"


def test_a_stop_signal_leaves_a_checkpoint_of_its_kind(make_run):
    status = read_status(make_run(*TRAINED, checkpoint=163, kinds=["stopped"]))
    assert (status["state"], status["step"]) == ("stopped", 163)
    assert status["reason"] == "saved at step 163, where training resumes"


@pytest.mark.parametrize(
    ("step", "patience", "reason"),
    [
        (500, 0, "complete: done"),
        (150, 3, "complete: ended early: evaluations without a better"),
        # Resumed to more steps, and killed.
        (150, 0, "interrupted: ended without saving"),
        (150, 4, "interrupted: ended without saving"),
    ],
)
def test_a_complete_run_has_a_final_record(make_run, step, patience, reason):
    final = {"step": step, "kind": "final", "time": time_of(120), "elapsed": 120}
    run = make_run(*TRAINED, final, checkpoint=step, progress={"stale_evaluations": 3})
    evaluation = EvaluationConfig(every_steps=7, patience=patience)
    run.write_config(Config(steps=500, evaluation=evaluation))
    status = read_status(run)
    assert f"{status['state']}: {status['reason']}".startswith(reason)


def test_a_diverged_run_is_not_a_crash(make_run):
    skipped = [
        {"step": n, "kind": "skipped", "loss": None, "gradient_norm": None}
        | {"in_a_row": n - 150}
        for n in range(151, 161)
    ]
    status = read_status(make_run(*TRAINED, *skipped))
    assert (status["state"], status["step"]) == ("diverged", 160)
    assert "up to step 160" in status["reason"]


def test_before_the_first_step(make_run, tmp_path):
    prepared = Workdir(tmp_path)
    (tmp_path / "data.json").write_text("{}")
    workdir = make_run()
    assert read_status(prepared)["state"] == "not_started"
    assert read_status(workdir)["state"] == "not_started"
    with workdir.locked(), prepared.locked():
        status = read_status(workdir)
        assert read_status(prepared)["state"] == "preparing"
    assert (status["state"], status["reason"]) == ("running", "before its first step")


def test_a_status_has_the_same_keys_whatever_is_there(tmp_path, make_run):
    (tmp_path / "model.json").write_text('{"step": 7, "averaged_steps": [1, 2, 3]}')
    status = read_status(Workdir(tmp_path))
    assert "the average of 3 checkpoints" in status["reason"]
    of_a_run = read_status(make_run(*TRAINED, evaluation(150, None, at=111)))
    assert of_a_run.keys() == status.keys()
    assert of_a_run["best"] is None


def test_reading_a_status_never_fails_a_start(make_run):
    """A start that meets the status's shared lock waits for its end."""
    workdir = make_run()
    with workdir.locked():
        pass
    with workdir.lock_path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(0.05, fcntl.flock, [file, fcntl.LOCK_UN]).start()
        with workdir.locked() as owner:
            assert workdir.owner() == owner


def test_a_status_needs_no_jax_and_writes_nothing(make_run):
    workdir = make_run(*TRAINED, evaluation(150, 7.5, at=112), checkpoint=100)
    before = {path: path.stat().st_mtime_ns for path in workdir.path.rglob("*")}
    program = (
        "import sys\n"
        "from t2t_jax.main import main\n"
        "code = main(sys.argv[1:])\n"
        "sys.exit(code or 'jax' in sys.modules)\n"
    )
    argv = [sys.executable, "-c", program, "status", f"--workdir={workdir.path}"]
    done = run(argv, ROOT)
    first, *others, quality = done.stdout.splitlines()
    assert first.endswith(", step 150 of 500 (30 %)")
    assert [line.split()[0] for line in others] == ["lock", "speed", "time"]
    assert "loss 2.000, development BLEU 7.50 at step 150, best 7.50" in quality
    assert before == {p: p.stat().st_mtime_ns for p in workdir.path.rglob("*")}
