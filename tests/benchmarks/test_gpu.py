"""gpu.sh: what is skipped, ended and tried again, its flags, and a rehearsal of all."""

import json
import subprocess
import sys
import time
from pathlib import Path

import decode_options
import gpu_checks
import numpy as np
import pytest
import step_options

from tests.integration.tiny import ROOT, environment


def gpu(out, *flags, python=sys.executable):
    own = {**environment(), "PYTHON": str(python), "T2T_JAX_TEST_DATA": ""}
    return subprocess.run(
        ["bash", ROOT / "benchmarks/gpu.sh", out, *flags],
        capture_output=True,
        text=True,
        env=own,
        timeout=850,
        check=False,
    )


@pytest.fixture
def python(tmp_path):
    """An interpreter that only writes down what it should run; `pretend` decides."""
    path = tmp_path / "python"
    path.write_text(
        '#!/usr/bin/env bash\ncase "$1" in -c) echo "${@:3}" | tr " " , ;; '
        f"gpu_report.py) ;; *) echo \"$@\" >> '{tmp_path}/calls'\n"
        f". '{tmp_path}/pretend' ;; esac\n"
    )
    path.chmod(0o755)
    (tmp_path / "pretend").write_text("echo '{}'")
    return path


def calls(python):
    lines = (python.parent / "calls").read_text().splitlines()
    (python.parent / "calls").unlink()
    return lines


def test_what_is_done_is_not_run_again_and_what_failed_comes_last(tmp_path, python):
    pretend = python.parent / "pretend"
    pretend.write_text(
        'case "$1" in gpu*) echo no GPU >&2; exit 1 ;; *) echo {} ;; esac'
    )
    flags = ["--only=loss_float32,step_base,decode"]
    assert gpu(tmp_path / "out", *flags, python=python).returncode == 1
    assert [line.split()[0] for line in calls(python)] == [
        *("gpu_checks.py", "train_step.py", "decode.py")
    ]
    assert "no GPU" in (tmp_path / "out/loss_float32.failed").read_text()
    pretend.write_text("echo '{}'")
    flags = ["--only=loss_float32,step_base,step_big"]
    assert gpu(tmp_path / "out", *flags, python=python).returncode == 0
    assert [line.split()[0] for line in calls(python)] == [
        *("train_step.py", "gpu_checks.py")
    ]
    assert not list((tmp_path / "out").glob("*.failed"))


def test_a_part_out_of_time_is_ended_with_its_processes(tmp_path, python):
    pid = tmp_path / "pid"
    (python.parent / "pretend").write_text(f"sleep 600 & echo $! > {pid}; wait")
    script = (ROOT / "benchmarks/gpu.sh").read_text()
    assert script.count("loss_float32 90") == 2
    copy = tmp_path / "benchmarks/gpu.sh"
    copy.parent.mkdir()
    copy.write_text(script.replace("loss_float32 90", "loss_float32 2"))
    found = subprocess.run(
        ["bash", copy, tmp_path / "out", "--only=loss_float32"],
        env={**environment(), "PYTHON": str(python)},
        timeout=60,
        check=False,
    )
    assert found.returncode == 3
    for _ in range(100):  # until init has it
        stat = Path(f"/proc/{int(pid.read_text())}/stat")
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child of a part goes on")


def test_a_rehearsal_and_figures_are_not_mixed(tmp_path, python):
    assert gpu(tmp_path, "--rehearse", "--only=decode", python=python).returncode == 0
    assert "Choose another OUT" in gpu(tmp_path, python=python).stderr


def test_every_part_for_a_gpu_has_flags_that_its_program_knows(
    tmp_path, python, monkeypatch
):
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)
    assert gpu(tmp_path / "out", python=python).returncode == 0
    parse = {
        "train_step.py": step_options.parse_arguments,
        "decode.py": decode_options.parse_arguments,
    }
    found = [line.split() for line in calls(python)]
    options = [parse[name](flags) for name, *flags in found if name in parse]
    step_base, _, _, variants, on_text, decode = options
    assert step_base.peer == ("hf_marian", "torch")
    assert step_base.compile_peer
    assert decode.batches == (1, 32, 512, 4096)
    for kernel in ("cudnn", "cudnn_packed", "tokamax"):
        assert f"model.attention={kernel}" in variants.variant
    assert variants.pairs == 768
    assert "data.packed_row_lengths=3" in on_text.variant


def test_drawn_rows_are_packed_and_differ():
    rows = gpu_checks.packed_segments(5, 64, seed=0)
    assert len({row.tobytes() for row in rows}) == 5
    for row in rows:
        used = row[row > 0]
        assert set(np.diff(used)) <= {0, 1}
        assert not row[len(used) :].any()
    assert rows.max() > 1


def test_a_rehearsal_goes_through_all_parts(tmp_path):
    out = tmp_path / "out"
    found = gpu(out, "--rehearse", "--minutes=14")
    assert found.returncode == 0, found.stderr
    reports = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}
    names = "loss_float32 attention_kernels step_variants step_on_text decode"
    assert set(reports) == {*names.split(), "recipe_tokenized_simcut"}
    assert len(reports["loss_float32"]["losses"]["cpu"]) == 3
    assert reports["attention_kernels"]["encoder"]["plain"]["agrees"]
    assert reports["step_variants"]["pairs_per_row"] == 2
    assert 0 <= reports["step_on_text"]["ours"]["share_waiting_for_input"] <= 1
    rows = (out / "rows.md").read_text()
    for title in ("Correctness", "Training step", "Decoding", "Multi30k"):
        assert f"## {title}" in rows
    assert "| tokenized_simcut | 2 |" in rows
    again = gpu(out, "--rehearse")  # has nothing to do
    assert (again.returncode, again.stdout) == (0, rows)
    assert "at most" not in again.stderr
