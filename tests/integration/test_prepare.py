"""`--mode=prepare` through the real command line."""

import json

import pytest

from tests.integration import tiny


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepares a workdir; returns it and what was said."""
    workdir = tmp_path_factory.mktemp("prepared") / "run"
    done = tiny.succeed("--mode=prepare", *tiny.arguments(workdir))
    assert done.stdout == b""
    return workdir, done.stderr.decode()


def test_it_leaves_vocabulary_and_reports_and_no_run(prepared):
    workdir, said = prepared
    names = {path.name for path in workdir.iterdir()}
    assert names == {
        *("lock", "vocab.model", "vocab.json", "known_words.npy"),
        *("data.json", "data_report.txt"),
    }
    assert (workdir / "data_report.txt").read_text(encoding="utf-8") in said
    assert "300 pairs read" in said
    assert "--mode=train" in said


def test_training_goes_on_with_what_was_prepared(prepared):
    workdir, _ = prepared
    told = json.loads((workdir / "data.json").read_text(encoding="utf-8"))
    # Another model, but the same text.
    done = tiny.succeed(*tiny.arguments(workdir, model__d_ff=16, steps=1))
    said = done.stderr.decode()
    assert "Training a vocabulary" not in said
    assert "Preparing" not in said
    assert json.loads((workdir / "data.json").read_text(encoding="utf-8")) == told


def test_it_needs_no_jax(tmp_path, monkeypatch):
    (tmp_path / "jax.py").write_text("raise SystemExit('JAX was imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tiny.succeed("--mode=prepare", *tiny.arguments(tmp_path / "run"))
