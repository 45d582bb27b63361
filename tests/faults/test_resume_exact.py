"""A run that was stopped ends as one that was not: every bit, and every record.

Seen to fail: with the position of the data restored one batch further on; without the
window of the records restored; with the step restored as 0, from which dropout masks
and learning rates come.
"""

import json

import pytest

from tests.faults import running

# 4 batches are an epoch. Records of 5 steps and saves after 4: step 9 is inside an
# epoch, one step after a save and inside a record, 12 is the end of an epoch.
STOPS = (9, 12)
CHANGED = {
    "steps": 15,
    "data__train": "phrasebook:train:140",
    "data__tokens_per_batch": 1024,
    "model__dropout": 0.3,
    "logging__every_steps": 5,
    "evaluation__every_steps": 0,
    "checkpoint__keep": 15,
}


def standing(workdir, step):
    """Reads what a checkpoint says of the run, without what depends on the clock."""
    path = workdir / "checkpoints" / str(step) / "meta" / "metadata"
    progress = json.loads(path.read_text(encoding="utf-8"))["progress"]
    return {k: v for k, v in progress.items() if "minutes" not in k}


def samples(workdir):
    return {path.name: path.read_bytes() for path in (workdir / "samples").iterdir()}


# First, as `compiled_as_for_users` lasts to the end of the file.
def test_modified_pairs_and_sampled_subwords_go_on_to_the_same_bits(tmp_path):
    """On two devices, with two passes through the model, and evaluated."""
    whole, parts = tmp_path / "whole" / "run", tmp_path / "parts" / "run"
    how = {
        **{**CHANGED, "steps": 10, "evaluation__every_steps": 7, "devices": 2},
        **{"data__source_bpe_dropout": 0.2, "data__target_bpe_dropout": 0.1},
        "data__train": "phrasebook:train:120",
        "data__modifiers": "title:0.2,typos:0.2,double_spaces:0.1",
        "training__r_drop": 5.0,
    }
    said = running.finish(whole, fresh=True, checkpoint__every_steps=2, **how)
    assert "BPE-dropout of source (0.2) and target (0.1), modifiers title" in said
    assert standing(whole, 8)["position"] == [2, 0]
    for stop in (6, 8):  # inside an epoch, and at its end
        running.finish(parts, code=75, fault=f"term@{stop}", **how)
        assert standing(parts, stop) == standing(whole, stop)
        # A record is begun: its window has the divergence of two passes, too.
        assert len(standing(parts, stop)["window"]) == 7
    changed = {**how, "data__target_bpe_dropout": 0.2, "data__modifiers": ""}
    said = running.finish(parts, code=78, **changed)
    assert "data.target_bpe_dropout was 0.1 when this run began" in said
    assert "data.modifiers was 'title:0.2,typos" in said
    running.finish(parts, **how)
    running.require_same(parts, whole, 10)
    assert samples(parts) == samples(whole)
    records = running.metrics(parts)
    kinds = [one["kind"] for one in records]
    assert [kinds.count(one) for one in ("train", "eval", "final")] == [3, 2, 1]
    for record in records:
        is_trained = record["kind"] == "train"
        assert (record.get("consistency", 0.0) > 0.0) == is_trained


@pytest.mark.usefixtures("compiled_as_for_users")
@pytest.mark.parametrize("devices", [1, pytest.param(8, marks=pytest.mark.soak)])
def test_stopped_and_resumed_equals_uninterrupted(tmp_path, devices):
    whole, parts = tmp_path / "whole" / "run", tmp_path / "parts" / "run"
    # Its order must not depend on hashes that an interpreter draws.
    fresh = {"fresh": True, "checkpoint__every_steps": 3}
    running.finish(whole, devices=devices, **fresh, **CHANGED)
    how = {"devices": devices, "checkpoint__every_steps": 4, **CHANGED}
    before, stood = 0, {}
    for stop in STOPS:
        said = running.finish(parts, code=75, fault=f"term@{stop}", **how)
        assert (f"Resuming from step {before}" in said) == (before > 0)
        assert running.saved(parts)[-1] == stop
        stood[stop] = standing(parts, stop)
        assert stood[stop] == standing(whole, stop)
        running.require_bit_equal(
            running.parameters(parts, stop), running.parameters(whole, stop)
        )
        before = stop
    assert stood[9]["window"] != []
    assert [stood[stop]["position"] for stop in STOPS] == [[2, 1], [3, 0]]
    assert "Resuming from step 12" in running.finish(parts, **how)
    assert standing(parts, 15) == standing(whole, 15)
    running.require_same(parts, whole, 15)
