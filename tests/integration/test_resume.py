"""Runs of other optimizers, layouts and vocabularies resume to the same bits.

What a run that goes on refuses to go on with, too. That of the paper's optimizer
resumes: tests/faults/test_resume_exact.py and test_signals.py. Seen to fail: with
`state.params` saved as the item `params` of a run with a moving average; with the
average restored as the parameters.
"""

import dataclasses
import functools
import json
import re
import shutil

import jax
import numpy as np
import pytest

import t2t_jax
from t2t_jax.data.batching.collate import collate
from t2t_jax.data.batching.planner import plan_eval
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.run.prepared_data import open_prepared_data
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.loss import summarise, total
from t2t_jax.training.step import compile_evaluation
from tests.faults import running
from tests.integration import tiny

HOW = {
    "steps": 6,
    "model__dropout": 0.3,
    "optimizer__warmup_steps": 3,
    "checkpoint__every_steps": 100_000,  # the last step alone
    "checkpoint__keep": 20,
    "evaluation__every_steps": 0,
    "logging__every_steps": 1,
}
KINDS = {
    "muon, its average, two vocabularies": {
        "optimizer__name": "muon",
        "optimizer__weight_decay": 0.1,
        "optimizer__schedule": "warmup_stable_decay",
        "optimizer__decay_fraction": 0.4,  # of 6 steps: the last 2
        "checkpoint__every_steps": 1,
        "training__ema_decay": 0.6,
        "vocabulary__size": 140,
        "vocabulary__source_size": 110,
        "model__tying": "decoder",
    },
    "schedule-free, length buckets": {
        "optimizer__name": "schedule_free",
        "training__frozen": "encoder/*/self_attention/query",
        "data__layout": "length_buckets",
        "data__tokens_per_batch": 1_024,
        "evaluation__every_steps": 100_000,  # the last step alone
        "evaluation__bleu_sentences": 1,
    },
    "adafactor, two lengths": {
        "optimizer__name": "adafactor",
        "optimizer__weight_decay": 0.1,
        "model__d_model": 128,  # as many rows and columns as it factors
        "model__d_ff": 128,
        "training__frozen": "embedding",
        "training__simcut": 1.0,
        "data__packed_row_lengths": 2,
        "data__tokens_per_batch": 512,
        "vocabulary__size": 400,
    },
}
AVERAGE, BUCKETS, ADAFACTOR = KINDS


def how(kind):
    return {**HOW, **KINDS[kind]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Trains six steps of a kind, once; returns the workdir and what was said."""

    @functools.cache
    def train(kind):
        workdir = tmp_path_factory.mktemp("whole") / "run"
        return workdir, running.finish(workdir, fresh=True, **how(kind))

    return train


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Trains three steps of a kind, once; returns the workdir."""

    @functools.cache
    def train(kind):
        workdir = tmp_path_factory.mktemp("stopped") / "run"
        running.finish(workdir, code=75, fault="term@3", **how(kind))
        return workdir

    return train


def copied(workdir, to, kind):
    """Copies a stopped run; returns its keys, with the token cache where it is."""
    shutil.copytree(workdir, to)
    return {**how(kind), "data__cache_dir": workdir.parent / "cache"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_resumes_to_the_same_bits(whole, stopped, kind, tmp_path):
    workdir, _ = whole(kind)
    parts = tmp_path / "run"
    keys = copied(stopped(kind), parts, kind)
    assert "Resuming from step 3" in running.finish(parts, **keys)
    running.require_same(parts, workdir, 6)


@pytest.mark.parametrize(
    ("kind", "mesh"),
    [
        (AVERAGE, {"mesh__fsdp": 2, "mesh__tensor": 2, "mesh__shard_optimizer": True}),
        pytest.param(
            ADAFACTOR, {"mesh__fsdp": 2, "mesh__tensor": 2}, marks=pytest.mark.soak
        ),
        pytest.param(BUCKETS, {}, marks=pytest.mark.soak),
    ],
)
def test_eight_devices_continue_a_run_of_one(whole, stopped, tmp_path, kind, mesh):
    workdir = tmp_path / "run"
    keys = copied(stopped(kind), workdir, kind)
    mesh = {**mesh, "checkpoint__every_steps": 100_000}
    said = running.finish(workdir, devices=8, **keys | mesh)
    assert "Resuming from step 3" in said
    both = (workdir, whole(kind)[0])
    ours, theirs = ([r["loss"] for r in running.metrics(run)[:6]] for run in both)
    assert ours == pytest.approx(theirs, rel=1e-4)  # float32 sums in another order


def items(workdir, step, item):
    leaves = running.parameters(workdir, step, (item,))
    return {path.removeprefix(item): leaf for path, leaf in leaves.items()}


def test_what_is_saved_and_loaded_is_the_average_of_what_is_trained(whole):
    workdir, _ = whole(AVERAGE)
    average = items(workdir, 1, "params")
    for step in range(2, 7):
        trained = items(workdir, step, "trained")
        decay = min(0.6, step / (9 + step))  # of update t = step - 1
        for path, leaf in trained.items():
            average[path] = decay * average[path] + (1 - decay) * leaf
        saved = items(workdir, step, "params")
        for path, leaf in saved.items():
            # float32 sums of about 1
            np.testing.assert_allclose(leaf, average[path], atol=1e-6)
    moved = [np.abs(saved[path] - trained[path]).max() for path in trained]
    assert max(moved) > 1e-4
    table = t2t_jax.load(workdir, checkpoint="last").params["target_embedding"]["table"]
    np.testing.assert_array_equal(table, saved["['target_embedding']['table']"])


def test_batches_of_several_shapes_and_a_development_loss_that_has_none(whole):
    workdir, said = whole(BUCKETS)
    shapes = re.findall(r"Compiling .* for (\d+) rows of (\d+) slots", said)
    assert len(shapes) == len(set(shapes)) >= 2
    assert len(re.findall("Compiling .* rows", whole(ADAFACTOR)[1])) == 2
    records = running.metrics(workdir)
    (evaluation,) = (r for r in records if r["kind"] == "eval")
    # Rows of the length of their group: with packed rows of 64 it would be 80 %.
    trained = [r for r in records if r["kind"] == "train"]
    assert all(0.05 < r["padding_fraction"] < 0.5 for r in trained)

    run, model = Workdir(workdir), t2t_jax.load(workdir, devices=jax.devices()[:1])
    config, mesh = run.read_config(), make_mesh(jax.devices()[:1])
    sums = compile_evaluation(model.module, label_smoothing=0.1, mesh=mesh)
    text = open_prepared_data(config, workdir=run, log=print)
    packed = text._replace(config=dataclasses.replace(config.data, layout="packed"))
    planned = plan_eval(packed.dev.lengths, config=packed.config)
    batches = (collate(packed.dev, one) for one in planned)
    figures = summarise(total([sums(model.params, batch) for batch in batches]))
    for name in ("loss", "nll", "accuracy"):
        # float32 sums of some hundred terms
        assert figures[name] == pytest.approx(evaluation[name], rel=1e-5)


def test_two_vocabularies_are_kept_used_and_averaged(whole, tmp_path):
    workdir, _ = whole(AVERAGE)
    told = json.loads((workdir / "data.json").read_text(encoding="utf-8"))
    sizes = [told[f"{side}_vocabulary"]["size"] for side in ("source", "target")]
    assert sizes == [110, 140]
    to = tmp_path / "mean"
    tiny.succeed("--mode=average", f"--workdir={workdir}", f"--to={to}", "--last=2")
    for model in map(t2t_jax.load, (workdir, to)):
        assert [v.size for v in model.vocabularies] == [110, 140]
        assert model.params["source_embedding"]["table"].shape == (110, 16)
        assert model.params["target_embedding"]["table"].shape == (140, 16)
    assert len(model.translate(["The old teacher reads a book.", ""])) == 2
