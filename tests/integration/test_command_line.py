"""The whole program, from text to translations, as a user runs it."""

import json
import re
import subprocess
import sys

import pytest

from tests.integration import tiny

SOURCES = "The old teacher reads a book.\n\nTwo children help a man.\n \t \n"


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "über uns"  # a space and an umlaut
    done = tiny.run(*tiny.arguments(path))
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""  # stdout is for results
    path.with_name("stderr").write_bytes(done.stderr)
    return path


def test_training_ends_with_what_to_do_next(workdir):
    said = workdir.with_name("stderr").read_text(encoding="utf-8")
    assert "Done: 12 steps, best development BLEU " in said
    flags = f"--workdir='{workdir}'"  # its name has a space
    assert f"translate:  python -m t2t_jax.main --mode=translate {flags} <" in said
    assert f"score:      python -m t2t_jax.main --mode=evaluate {flags} " in said


def test_the_first_step_is_told_and_each_message_has_its_time(workdir):
    said = workdir.with_name("stderr").read_text(encoding="utf-8").splitlines()
    stamp = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \+\d+:\d\d:\d\d\] ")
    told = [line for line in said if not line.startswith("  ") and line]
    assert all(map(stamp.match, told)), said
    assert any("step 1/12 (8 %)  loss (smoothed) " in line for line in told)


def test_a_run_leaves_everything_in_its_workdir(workdir):
    names = {path.name for path in workdir.iterdir()}
    assert {
        "config.json",
        "vocab.model",
        "vocab.json",
        "data.json",
        "metrics.jsonl",
        "samples",
        "dev_outputs",
        "report.html",
        "environment.json",
        "checkpoints",
    } <= names
    assert any(name.startswith("events.out") for name in names)
    steps = {int(path.name) for path in (workdir / "checkpoints").iterdir()}
    # Periodic at 5 and 10, final at 12, and 8 or 12 with the best BLEU.
    assert {5, 10, 12} <= steps <= {5, 8, 10, 12}


def test_metrics_hold_what_scripts_rely_on(workdir):
    lines = (workdir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    train = [record for record in records if record["kind"] == "train"]
    scored = [record for record in records if record["kind"] == "eval"]
    assert [record["step"] for record in train] == [1, 2, 4, 6, 8, 10, 12]
    assert [record["step"] for record in scored] == [8, 12]
    assert set(train[0]) >= {
        "time",
        "elapsed",
        "loss",
        "nll",
        "perplexity",
        "learning_rate",
        "gradient_norm",
        "target_tokens_per_second",
        "padding_fraction",
    }
    assert set(scored[0]) >= {"loss", "nll", "perplexity", "bleu", "bleu_signature"}
    assert records[-1]["kind"] == "final"
    assert records[-1]["step"] == 12


def test_data_json_counts_what_was_read(workdir):
    data = json.loads((workdir / "data.json").read_text(encoding="utf-8"))
    counts = data["train"]["counts"]
    assert counts["read"] == 300
    # None is just gone.
    assert counts["too_long"] < 30
    assert counts["kept"] + counts["too_long"] + counts["empty"] == 300


def test_the_same_command_again_finds_the_run_complete(workdir):
    before = (workdir / "metrics.jsonl").read_bytes()
    again = tiny.run(*tiny.arguments(workdir))
    assert again.returncode == 0
    assert b"complete" in again.stderr
    assert b"--mode=translate --workdir=" in again.stderr
    assert (workdir / "metrics.jsonl").read_bytes() == before


def test_translate_writes_as_many_lines_as_it_reads(workdir):
    done = tiny.run("--mode=translate", f"--workdir={workdir}", stdin=SOURCES.encode())
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().split("\n")
    assert len(lines) == 5  # four and what follows the last newline
    assert lines[1] == ""  # an empty line stays empty
    assert lines[3] == ""  # a blank one says nothing either
    assert lines[-1] == ""


def test_translate_of_nothing_is_nothing(workdir):
    done = tiny.run("--mode=translate", f"--workdir={workdir}")
    assert (done.returncode, done.stdout) == (0, b"")


def test_evaluate_prints_one_json_object(workdir, tmp_path):
    (tmp_path / "en").write_text(SOURCES, encoding="utf-8")
    (tmp_path / "de").write_text("a\n\nb\n\n", encoding="utf-8")
    done = tiny.run(
        "--mode=evaluate",
        f"--workdir={workdir}",
        f"--source={tmp_path / 'en'}",
        f"--reference={tmp_path / 'de'}",
        "--checkpoint=last",
        fresh=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    result = json.loads(done.stdout)
    assert result["sentences"] == 4
    assert result["checkpoint_step"] == 12
    bleu, chrf = done.stderr.decode().splitlines()[-2:]
    assert bleu == f"BLEU = {result['bleu']:.1f} ({result['bleu_signature']})"
    assert chrf.startswith(f"chrF = {result['chrf']:.1f} (nrefs:1|")
    assert set(result) == {
        "bleu",
        "bleu_signature",
        "chrf",
        "chrf_signature",
        "sentences",
        "statuses",
        "seconds",
        "checkpoint_step",
    }


def test_a_smaller_number_of_steps_leaves_a_complete_run_as_it_is(workdir):
    before = (workdir / "config.json").read_bytes()
    done = tiny.run(f"--workdir={workdir}", "--config.steps=5")
    assert done.returncode == 0
    assert b"complete" in done.stderr
    assert (workdir / "config.json").read_bytes() == before


def test_other_text_is_refused_after_the_end_too(workdir):
    before = (workdir / "config.json").read_bytes()
    done = tiny.run(f"--workdir={workdir}", "--config.data.train=phrasebook:train:99")
    assert done.returncode == 65, done.stderr.decode()
    assert b"data.train" in done.stderr
    assert (workdir / "config.json").read_bytes() == before


def test_both_wrong_files_of_an_evaluation_are_named(workdir, tmp_path):
    done = tiny.run(
        "--mode=evaluate",
        f"--workdir={workdir}",
        f"--source={tmp_path / 'no.en'}",
        f"--reference={tmp_path / 'no.de'}",
    )
    assert done.returncode == 66
    assert b"no.en" in done.stderr
    assert b"no.de" in done.stderr


def test_a_full_disk_is_said_without_a_traceback(workdir):
    command = (
        f"echo Hello. | '{sys.executable}' -m t2t_jax.main --mode=translate "
        f"--workdir='{workdir}' > /dev/full"
    )
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        env=tiny.environment(),
        cwd=tiny.ROOT,
        check=False,
    )
    assert done.returncode == 74
    *warnings, last = done.stderr.decode().splitlines()
    assert last == "error: No space left on device: standard output"
    assert all(line.startswith("warning: line 1 ") for line in warnings)
