"""The parts of gpu.sh: what is skipped, ended, tried again, and a rehearsal of all."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import decode_options
import gpu_checks
import gpu_parts
import numpy as np
import pytest
import step_options
import time_to_score
from gpu_parts import Part, Settings, make_parts
from gpu_report import markdown
from gpu_run import Results, main, run_all, run_part

from t2t_jax.errors import UserError
from tests.integration.tiny import ROOT, environment


def python(name, code, *, seconds=20):
    return Part(name, seconds, [sys.executable, "-c", code])


def done(folder):
    return Results(folder / "results.json", rehearse=True)


def run(parts, folder, *, minutes=1.0):
    run_all(parts, done(folder), minutes=minutes, log=folder / "log.txt")
    return done(folder).parts


def test_what_is_done_is_not_run_again_and_what_failed_comes_last(tmp_path):
    note = f"open({str(tmp_path / 'order')!r}, 'a').write('{{}} '); print('[{{}}]')"
    good = "print('{\"a\": 1}')"
    parts = [
        python("first", note.format("first", 1)),
        python("broken", note.format("broken", 2) + "; raise SystemExit('no GPU')"),
        python("last", note.format("last", 3)),
    ]
    found = run(parts[:2], tmp_path)
    assert found["first"]["state"] == "done"
    assert found["first"]["report"] == [1]
    assert (found["broken"]["state"], found["broken"]["exit_code"]) == ("failed", 1)
    assert found["broken"]["reason"].strip() == "no GPU"
    parts[1] = python("broken", good + ";" + note.format("mended", 2)[:-13])
    found = run(parts, tmp_path)
    assert {one["state"] for one in found.values()} == {"done"}
    order = (tmp_path / "order").read_text().split()
    assert order == ["first", "broken", "last", "mended"]


def test_a_part_out_of_time_is_ended_with_its_processes(tmp_path):
    child = "import time; time.sleep(60)"
    code = (
        "import subprocess, sys, time;"
        f"p = subprocess.Popen([sys.executable, '-c', {child!r}]);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    log = tmp_path / "log.txt"
    found = run_part(
        python("slow", code), seconds=2, log=log, environment=dict(os.environ)
    )
    assert found == {"state": "out of time", "reason": "ended after 2 s"}
    process = int((tmp_path / "pid").read_text())
    for _ in range(100):  # until init has it
        try:
            state = Path(f"/proc/{process}/stat").read_text().split()[2]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child of a part goes on")


def test_without_time_nothing_is_begun(tmp_path, capsys):
    assert run([python("one", "print(1)")], tmp_path, minutes=0.1) == {}
    assert "The same command goes on" in capsys.readouterr().err


def test_what_prints_no_report_has_failed(tmp_path):
    found = run([python("silent", "pass")], tmp_path)
    assert found["silent"]["state"] == "failed"


def test_a_rehearsal_and_figures_are_not_mixed(tmp_path):
    run([python("one", "print(1)")], tmp_path)
    with pytest.raises(UserError, match="Choose another OUT"):
        Results(tmp_path / "results.json", rehearse=False)


def test_an_unknown_part_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--only=step_tiny", "--data="])
    assert "step_base, step_big" in capsys.readouterr().err


@pytest.fixture
def parts(monkeypatch, tmp_path):
    """All parts for a GPU, as if all peers were installed."""
    monkeypatch.setattr(gpu_parts, "find_spec", lambda name: name)
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)
    return make_parts(Settings(rehearse=False, data="DATA", scratch=tmp_path))


def test_every_part_for_a_gpu_has_flags_that_its_program_knows(parts):
    parse = {
        "train_step.py": step_options.parse_arguments,
        "decode.py": decode_options.parse_arguments,
        "time_to_score.py": time_to_score.read_options,
    }
    names, options = [], {}
    for part in parts:
        script = os.path.basename(part.argv[1])
        names.append(script)
        assert os.path.isfile(part.argv[1])
        if script in parse:
            options[part.name] = parse[script](part.argv[2:])
    assert set(names) >= {*parse, "gpu_checks.py", "gpu_recipe.py"}
    assert options["step_base"].peer == ("hf_marian", "torch")
    assert options["step_base"].compile_peer
    assert options["decode"].batches == (1, 32, 512, 4096)
    for kernel in ("cudnn", "cudnn_packed", "tokamax"):
        assert f"model.attention={kernel}" in options["step_variants"].variant
    assert "JAX_OPTIMIZATION_LEVEL=O1" in options["step_variants"].variant
    assert options["step_variants"].pairs == 768
    assert "data.packed_row_lengths=3" in options["step_on_text"].variant


def test_without_text_the_recipes_are_missing_and_say_what_they_need(tmp_path):
    settings = Settings(rehearse=False, data="", scratch=tmp_path)
    missing = [part for part in make_parts(settings) if part.missing]
    assert len(missing) == 4
    found = run(missing[:1], tmp_path)
    assert found["recipe_tokenized"]["state"] == "missing"
    assert "pass --data" in markdown({"rehearsal": False, "parts": found})


def test_a_recipe_s_score_is_that_of_its_protocol():
    scores = {"bleu": 30.0, "bleu_signature": "13a"}
    report = {"row": "raw", "steps": 8, "training_minutes": 1.0, "scores": scores}
    parts = {"recipe_raw": {"state": "done", "report": report}}
    assert "| raw | 8 | 1.00 | 30.00 | 13a |" in markdown(
        {"rehearsal": False, "parts": parts}
    )
    scores["tokenized_bleu"] = {"score": 41.02, "signature": "tok:none"}
    assert "| 41.02 | of tokens: tok:none |" in markdown(
        {"rehearsal": False, "parts": parts}
    )


def test_drawn_rows_are_packed_and_differ():
    rows = gpu_checks.packed_segments(5, 64, seed=0)
    assert len({row.tobytes() for row in rows}) == 5
    for row in rows:
        used = row[row > 0]
        assert (np.diff(used) >= 0).all()
        assert set(np.diff(used)) <= {0, 1}
        assert not row[len(used) :].any()
    assert rows.max() > 1


def test_a_rehearsal_goes_through_all_parts(tmp_path):
    out = tmp_path / "out"
    flags = [out, "--rehearse", "--minutes=14", f"--scratch={tmp_path / 'scratch'}"]
    command = ["bash", ROOT / "benchmarks/gpu.sh", *flags]
    own = {**environment(), "PYTHON": sys.executable, "T2T_JAX_TEST_DATA": ""}
    found = subprocess.run(
        command, capture_output=True, text=True, env=own, timeout=850, check=False
    )
    assert found.returncode == 0, found.stderr
    content = json.loads((out / "results.json").read_text())
    names = "loss_float32 attention_kernels step_variants step_on_text decode"
    names += " recipe_tokenized_simcut time_to_score"
    assert list(content["parts"]) == names.split()
    reports = {name: one["report"] for name, one in content["parts"].items()}
    assert len(reports["loss_float32"]["losses"]["cpu"]) == 3
    assert reports["attention_kernels"]["encoder"]["plain"]["agrees"]
    assert reports["step_variants"]["pairs_per_row"] == 2
    assert 0 <= reports["step_on_text"]["ours"]["share_waiting_for_input"] <= 1
    assert reports["recipe_tokenized_simcut"]["steps"] == 2
    rows = (out / "rows.md").read_text()
    for title in ("Correctness", "Training step", "Decoding", "recipe"):
        assert f"## {title}" in rows or title == "recipe"
    assert "| tokenized_simcut | 2 |" in rows
    assert (out / "plots.png").stat().st_size > 1_000
    # A second call has nothing to do.
    again = subprocess.run(
        command, capture_output=True, text=True, env=own, timeout=100, check=False
    )
    assert (again.returncode, again.stdout) == (0, rows)
    assert "at most" not in again.stderr
