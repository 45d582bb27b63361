"""A run that was stopped goes on as if it had not been."""

import json
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from t2t_jax.cli.flags import parse_argv
from t2t_jax.experiment import Run
from t2t_jax.text import prepare_text
from t2t_jax.training.reporting import Console
from tests.integration import tiny

pytestmark = pytest.mark.slow

SLOW = pytest.mark.slow
_TIMED = ("seconds", "minutes", "target_tokens_per_second")


class StopAfter:
    """Requests a stop when it has been asked for the n-th time: after n steps."""

    def __init__(self, steps):
        self._left = steps

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def reached(self, step):
        self._left -= 1
        return self._left == 0


def _train(workdir, *, stop, devices):
    options = parse_argv(tiny.arguments(workdir))
    options.workdir.create()
    console = Console(options.config.steps, every_seconds=0)
    text = prepare_text(options.config, workdir=options.workdir, say=console.say)
    run = Run(
        options.config,
        workdir=options.workdir,
        text=text,
        console=console,
        devices=jax.devices()[:devices],
    )
    state = {}
    save = run.save
    run.save = lambda *a: (save(*a), state.update(kept=jax.device_get(a[0])))
    progress = run.train(stop)
    return progress, state["kept"]


def _metrics(workdir):
    """Reads metrics.jsonl without what depends on the clock."""
    with (workdir / "metrics.jsonl").open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return [{k: v for k, v in r.items() if k not in _TIMED} for r in records]


# Record every 2 steps, save every 5: step 5 is inside a window of the log, and 6 is
# one step after a save.
@pytest.mark.parametrize(
    ("stopped_at", "devices"),
    [(5, 1), pytest.param(6, 1, marks=SLOW), pytest.param(5, 8, marks=SLOW)],
)
def test_stopped_and_resumed_equals_uninterrupted_bit_for_bit(
    tmp_path, stopped_at, devices
):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _, expected = _train(whole, stop=StopAfter(-1), devices=devices)
    progress, _ = _train(parts, stop=StopAfter(stopped_at), devices=devices)
    assert progress.step == stopped_at
    progress, resumed = _train(parts, stop=StopAfter(-1), devices=devices)
    assert progress.step == 12
    assert len(jax.tree.leaves(expected)) > 30
    jax.tree.map(np.testing.assert_array_equal, expected, resumed)
    assert _metrics(parts) == _metrics(whole)


@SLOW
def test_a_checkpoint_of_8_devices_goes_on_on_1(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _train(whole, stop=StopAfter(-1), devices=1)
    _train(parts, stop=StopAfter(6), devices=8)
    _train(parts, stop=StopAfter(-1), devices=1)
    last = [_metrics(path)[-3] for path in (whole, parts)]
    assert last[0]["kind"] == "train"
    # float32 sums in another order, twelve Adam steps on.
    np.testing.assert_allclose(last[0]["loss"], last[1]["loss"], rtol=1e-4)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=SLOW),
        pytest.param(signal.SIGUSR1, marks=SLOW),
    ],
)
def test_a_signal_saves_exits_with_75_and_the_run_resumes(tmp_path, number):
    workdir = tmp_path / "run"
    endless = tiny.arguments(workdir, steps=100_000, checkpoint__every_steps=0)
    process = subprocess.Popen(
        [sys.executable, "-m", "t2t_jax.main", *endless],
        stderr=subprocess.PIPE,
        env=tiny.environment(),
        cwd=tiny.ROOT,
    )
    try:
        _wait_for_step(workdir / "metrics.jsonl", process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 75, errors.decode()
    assert b"Saved step" in errors
    assert b"Traceback" not in errors
    saved = max(int(path.name) for path in (workdir / "checkpoints").iterdir())
    resumed = tiny.run(*tiny.arguments(workdir, steps=saved + 1))
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert f"Going on from step {saved:,}".encode() in resumed.stderr


def _wait_for_step(metrics, process):
    for _ in range(1200):
        if metrics.exists() and b'"train"' in metrics.read_bytes():
            return
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.1)
    raise AssertionError("no step within 2 minutes")


def test_a_change_under_a_run_is_refused_with_both_values(tmp_path):
    workdir = tmp_path / "run"
    assert tiny.run(*tiny.arguments(workdir, steps=1)).returncode == 0
    refused = tiny.run(f"--workdir={workdir}", "--config.model.d_ff=64")
    assert refused.returncode == 78
    assert b"model.d_ff was 32" in refused.stderr
    assert b"64" in refused.stderr


def test_changed_text_under_a_run_is_refused(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    for path in (source, target):
        path.write_text("".join(f"a sentence {n}\n" for n in range(99)))
    text = {"data__train": f"text:{source},{target}", "vocabulary__size": 40}
    run = tmp_path / "run"
    assert tiny.run(*tiny.arguments(run, steps=1, **text)).returncode == 0
    records = ("config.json", "data.json", "fingerprints.json", "vocab.model")
    before = {name: (run / name).read_bytes() for name in records}
    target.write_text(target.read_text().replace("98", "97"))
    for mode in ("train", "prepare"):
        refused = tiny.run(*tiny.arguments(run, steps=2, **text), f"--mode={mode}")
        assert refused.returncode == 65, refused.stderr.decode()
        assert b"other content of: train" in refused.stderr
        # What was refused has left the run as it was.
        assert before == {name: (run / name).read_bytes() for name in records}


def test_a_run_without_a_checkpoint_keeps_to_its_text_too(tmp_path):
    run = tmp_path / "run"
    assert tiny.run(*tiny.arguments(run, steps=1)).returncode == 0
    shutil.rmtree(run / "checkpoints")
    other = {"data__train": "phrasebook:train:301"}
    refused = tiny.run(*tiny.arguments(run, steps=2, **other))
    assert refused.returncode == 65, refused.stderr.decode()
    assert b"other content of: train" in refused.stderr


def test_a_run_of_before_there_were_fingerprints_gets_its_own(tmp_path):
    run = tmp_path / "run"
    assert tiny.run(*tiny.arguments(run, steps=1)).returncode == 0
    made = (run / "fingerprints.json").read_bytes()
    (run / "fingerprints.json").unlink()
    other = {"data__train": "phrasebook:train:301"}
    refused = tiny.run(*tiny.arguments(run, steps=2, **other))
    assert refused.returncode == 65, refused.stderr.decode()
    assert (run / "fingerprints.json").read_bytes() == made
