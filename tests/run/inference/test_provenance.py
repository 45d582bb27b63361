import json

import pytest

from t2t_jax.run.inference import provenance
from t2t_jax.run.workdir import Workdir


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose checkpoint says `meta`."""
    meta = {"step": 7, "kinds": ["best"], "bleu": 1.5, "config": {}, "progress": {}}

    class Stored:
        def meta(self, step):
            assert step == 7
            return meta

    monkeypatch.setattr(provenance, "open_parameters", lambda directory: Stored())
    path = tmp_path / "my run"
    path.mkdir()
    records = [
        {"step": 7, "kind": "train", "loss": 9.0},
        {"step": 7, "kind": "eval", "bleu": 1.0, "seconds": 3, "sentences": 5},
        {"step": 8, "kind": "eval", "bleu": 8.0},
        {"step": 7, "kind": "eval", "bleu": 1.5, "bleu_signature": "s", "sentences": 5},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (path / "metrics.jsonl").write_text(lines)
    corpus = {"spec": "text:a,b", "fingerprint": "f", "examples": {"empty": ["text"]}}
    data = {"vocabulary": {"size": 9}, "train": {**corpus, "counts": {"kept": 3}}}
    (path / "data.json").write_text(json.dumps(data))
    return path


def test_a_model_knows_its_run_its_text_and_its_scores(run):
    assert provenance.provenance_of(Workdir(run), 7) == {
        "step": 7,
        "kinds": ["best"],
        "bleu": 1.5,
        "run": "my run",
        "data": {"train": {"spec": "text:a,b", "fingerprint": "f", "pairs": 3}},
        "development": {"bleu": 1.5, "bleu_signature": "s", "sentences": 5},
    }


def test_unknown_provenance_is_left_out_and_that_of_a_model_is_in_model_json(run):
    for name in ("metrics.jsonl", "data.json"):
        (run / name).unlink()
    origin = provenance.provenance_of(Workdir(run), 7)
    assert origin.keys() == {"step", "kinds", "bleu", "run"}
    (run / "model.json").write_text("{}")
    assert provenance.provenance_of(Workdir(run), 7).keys() == {"step", "kinds", "bleu"}


def test_a_model_that_was_changed_twice_says_both_and_loses_its_scores(run):
    origin = provenance.provenance_of(Workdir(run), 7)
    for kind in ("changed", "extended"):
        origin = provenance.changed_origin(origin, kind)
    assert origin["kinds"] == ["changed", "extended"]
    assert not origin.keys() & {"bleu", "development"}
