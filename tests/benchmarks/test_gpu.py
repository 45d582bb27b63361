"""gpu.sh: the flags of what it runs, and a rehearsal of all."""

import json
import subprocess
import sys

import decode_options
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


def test_every_part_for_a_gpu_has_flags_that_its_program_knows(tmp_path, monkeypatch):
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)
    python, calls = tmp_path / "python", tmp_path / "calls"
    # An interpreter that only writes down what it should run.
    python.write_text(
        '#!/usr/bin/env bash\ncase "$1" in -c) echo "${@:3}" | tr " " , ;; '
        f"gpu_report.py) ;; *) echo \"$@\" >> '{calls}'; echo '{{}}' ;; esac\n"
    )
    python.chmod(0o755)
    assert gpu(tmp_path / "out", python=python).returncode == 0
    programs = {"train_step.py": step_options, "decode.py": decode_options}
    ran = [line.split() for line in calls.read_text().splitlines()]
    known = [(programs[name], flags) for name, *flags in ran if name in programs]
    assert len([program.parse_arguments(flags) for program, flags in known]) == 6


def test_a_rehearsal_goes_through_all_parts(tmp_path):
    out = tmp_path / "out"
    found = gpu(out, "--rehearse", "--minutes=14")
    assert found.returncode == 0, found.stderr
    reports = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}
    reports.pop("estimate", None)  # needs NVIDIA's compiler
    assert reports["repeats"]["same_bits"]["default"] == {
        "again": True,
        "resumed": True,
    }
    names = "repeats loss_float32 attention_kernels step_variants step_on_text decode"
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
