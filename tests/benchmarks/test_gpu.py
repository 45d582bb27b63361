"""gpu.sh: the flags of what it runs, and a rehearsal of its parts.

Decoding and variants of the step are measured by `test_programs.py`.
"""

import json

import decode_options
import step_options

from tests.docs.commands import run
from tests.integration.tiny import ROOT, environment, server


def gpu(out, *flags, **changed):
    environ = server().for_shells({**environment(), "T2T_JAX_TEST_DATA": ""}) | changed
    script = ["bash", "benchmarks/gpu.sh", out, *flags]
    return run(script, ROOT, seconds=850, environ=environ)


def test_every_part_for_a_gpu_has_flags_that_its_program_knows(tmp_path, monkeypatch):
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)
    python, calls = tmp_path / "python", tmp_path / "calls"
    # An interpreter that only writes down what it should run.
    python.write_text(
        '#!/usr/bin/env bash\ncase "$1" in -c) echo "${@:3}" | tr " " , ;; '
        f"gpu_report.py) ;; *) echo \"$@\" >> '{calls}'; echo '{{}}' ;; esac\n"
    )
    python.chmod(0o755)
    gpu(tmp_path / "out", PYTHON=str(python))
    programs = {"train_step.py": step_options, "decode.py": decode_options}
    ran = [line.split() for line in calls.read_text().splitlines()]
    known = [(programs[name], flags) for name, *flags in ran if name in programs]
    assert len([program.parse_arguments(flags) for program, flags in known]) == 6


PARTS = "repeats loss_float32 attention_kernels recipe_tokenized_simcut"


def test_a_rehearsal_goes_through_its_parts(tmp_path):
    out, flags = tmp_path / "out", ("--rehearse", f"--only={PARTS.replace(' ', ',')}")
    gpu(out, *flags, "--minutes=14")
    reports = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}
    same = reports["repeats"]["same_bits"]["default"]
    assert same == {"again": True, "resumed": True}
    assert set(reports) == {*PARTS.split()}
    assert len(reports["loss_float32"]["losses"]["cpu"]) == 3
    assert reports["attention_kernels"]["encoder"]["plain"]["agrees"]
    rows = (out / "rows.md").read_text()
    for title in ("Correctness", "Multi30k"):
        assert f"## {title}" in rows
    assert "| tokenized_simcut | 2 |" in rows
    again = gpu(out, *flags)  # has nothing to do
    assert again.stdout == rows
    assert "at most" not in again.stderr
