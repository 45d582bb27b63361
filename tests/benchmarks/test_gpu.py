"""gpu.sh: what is skipped and tried again, its flags, and a rehearsal of all."""

import json
import subprocess
import sys

import decode_options
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
    """Returns the programs that it should have run, and the flags of each."""
    lines = (python.parent / "calls").read_text().splitlines()
    (python.parent / "calls").unlink()
    return [(name, flags) for name, *flags in map(str.split, lines)]


def test_what_is_done_is_not_run_again_and_what_failed_comes_last(tmp_path, python):
    pretend = python.parent / "pretend"
    pretend.write_text(
        'case "$1" in gpu*) echo no GPU >&2; exit 1 ;; *) echo {} ;; esac'
    )
    only = "--only=loss_float32,step_base,decode"
    assert gpu(tmp_path / "out", only, python=python).returncode == 1
    names = [name for name, _ in calls(python)]
    assert names == ["gpu_checks.py", "train_step.py", "decode.py"]
    assert "no GPU" in (tmp_path / "out/loss_float32.failed").read_text()
    pretend.write_text("echo '{}'")
    only = "--only=loss_float32,step_base,step_big"
    assert gpu(tmp_path / "out", only, python=python).returncode == 0
    assert [name for name, _ in calls(python)] == ["train_step.py", "gpu_checks.py"]
    assert not list((tmp_path / "out").glob("*.failed"))


def test_every_part_for_a_gpu_has_flags_that_its_program_knows(
    tmp_path, python, monkeypatch
):
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)
    assert gpu(tmp_path / "out", python=python).returncode == 0
    programs = {"train_step.py": step_options, "decode.py": decode_options}
    known = [(programs[p], flags) for p, flags in calls(python) if p in programs]
    assert len([program.parse_arguments(flags) for program, flags in known]) == 6


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
