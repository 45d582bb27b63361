"""The whole program, from text to translations, as a user runs it."""

import json
import shutil
import sys

import pytest

import t2t_jax
from t2t_jax.training.reporting.metrics_writer import read_metrics
from tests.docs.commands import run
from tests.integration import tiny

SOURCES = "The old teacher reads a book.\n\nTwo children help a man.\n \t \n"


@pytest.fixture(scope="module")
def workdir(tiny_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "über uns"  # a space and an umlaut
    return shutil.copytree(tiny_run, path)


def test_a_run_leaves_everything_in_its_workdir(workdir):
    names = {path.name for path in workdir.iterdir()}
    assert {
        *("config.json", "vocab.model", "vocab.json", "data.json", "metrics.jsonl"),
        *("samples", "dev_outputs", "report.html", "environment.json", "checkpoints"),
    } <= names
    assert any(name.startswith("events.out") for name in names)
    steps = {int(path.name) for path in (workdir / "checkpoints").iterdir()}
    # Periodic at 5 and 10, final at 12, and 8 or 12 with the best BLEU.
    assert {5, 10, 12} <= steps <= {5, 8, 10, 12}

    records = [*read_metrics(workdir / "metrics.jsonl")]
    train = [record for record in records if record["kind"] == "train"]
    scored = [record for record in records if record["kind"] == "eval"]
    assert [record["step"] for record in train] == [1, 2, 4, 6, 8, 10, 12]
    assert [record["step"] for record in scored] == [8, 12]
    assert set(train[0]) >= {
        *("time", "elapsed", "loss", "nll", "perplexity", "learning_rate"),
        *("gradient_norm", "target_tokens_per_second", "padding_fraction"),
    }
    assert set(scored[0]) >= {"loss", "nll", "perplexity", "bleu", "bleu_signature"}
    assert (records[-1]["kind"], records[-1]["step"]) == ("final", 12)

    data = json.loads((workdir / "data.json").read_text(encoding="utf-8"))
    counts = data["train"]["counts"]
    assert counts["read"] == 300
    # None is just gone.
    assert counts["too_long"] < 30
    assert counts["kept"] + counts["too_long"] + counts["empty"] == 300


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        ([], 0, "complete"),
        (["--config.steps=5"], 0, "complete"),
        # Other text is refused after the end, too.
        (["--config.data.train=phrasebook:train:99"], 65, "data.train"),
    ],
)
def test_a_complete_run_is_left_as_it_is(workdir, argv, code, message):
    files = [workdir / name for name in ("config.json", "metrics.jsonl")]
    before = [file.read_bytes() for file in files]
    done = tiny.run(f"--workdir={workdir}", *argv)
    assert done.returncode == code
    assert message in done.stderr.decode()
    if not argv:
        flags = f"--workdir='{workdir}'"  # its name has a space
        assert f"--mode=translate {flags} <" in done.stderr.decode()
    assert [file.read_bytes() for file in files] == before


def test_evaluate_prints_one_json_object(workdir, tmp_path):
    (tmp_path / "en").write_text(SOURCES, encoding="utf-8")
    (tmp_path / "de").write_text("a\n\nb\n\n", encoding="utf-8")
    text = (f"--source={tmp_path / 'en'}", f"--reference={tmp_path / 'de'}")
    argv = ("--mode=evaluate", f"--workdir={workdir}", *text, "--checkpoint=last")
    done = tiny.succeed(*argv, fresh=True)
    result = json.loads(done.stdout)
    model = tiny.load(workdir, checkpoint="last")
    parts, how = (model.module, model.params), {"decoding": model.decoding, "step": 12}
    own = t2t_jax.TranslationModel.of(*parts, model.vocabularies.target, **how)
    saved = tiny.load(t2t_jax.save_model(tmp_path / "own", own))
    lines = SOURCES.splitlines(), ["a", "", "b", ""]
    scores, *of_parts = (t2t_jax.evaluate(x, *lines) for x in (model, own, saved))
    for name, value in result.items():
        if name not in ("seconds", "intervals"):
            assert scores[name] == value
        # They know no words of training.
        if name not in ("seconds", "statuses", "intervals"):
            assert [one[name] for one in of_parts] == [value, value]
    assert result["sentences"] == 4
    assert result["checkpoint_step"] == 12
    bleu, chrf = done.stderr.decode().splitlines()[-2:]
    assert bleu == f"BLEU = {result['bleu']:.1f} ({result['bleu_signature']})"
    assert chrf.startswith(f"chrF = {result['chrf']:.1f} (nrefs:1|")
    assert set(result) == {
        *("bleu", "bleu_signature", "chrf", "chrf_signature", "sentences"),
        *("statuses", "seconds", "checkpoint_step", "intervals"),
    }


def test_a_full_disk_is_said_without_a_traceback(workdir):
    command = 'echo Hello. | "$0" -m t2t_jax.main translate "$1" > /dev/full'
    argv = ["bash", "-c", command, sys.executable, f"--workdir={workdir}"]
    *warnings, last = run(argv, tiny.ROOT, code=74).stderr.splitlines()
    assert last == "error: No space left on device: standard output"
    assert all(line.startswith("warning: line 1 ") for line in warnings)
