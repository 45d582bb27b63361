"""The tiny experiment in batches of several shapes: a row for each pair, and halves."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.config import Config, parse
from t2t_jax.model.architectures import make_module
from t2t_jax.run.prepared_data import prepare_data
from t2t_jax.run.resume_rules import forbidden_changes
from t2t_jax.run.trainer import Trainer
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.metrics import summarise, total
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import TIME_FIELDS
from t2t_jax.training.step import compile_evaluation
from t2t_jax.types import BatchShard
from tests.integration import tiny

CHANGED = {
    "data__layout": "length_buckets",
    "data__tokens_per_batch": 1_024,
    "steps": 8,
    "evaluation__every_steps": 100_000,  # the last step alone
    "evaluation__bleu_sentences": 1,
}


class StopAfter:
    """Requests a stop when it has been asked for the n-th time: after n steps."""

    def __init__(self, steps):
        self._left = steps

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def should_stop(self, step):
        self._left -= 1
        return self._left == 0

    def stop_requested(self):
        return False


class Trained:
    """A run, as far as it came: what it said, where it stands, its last state."""

    def __init__(self, workdir, *, steps_asked=-1, devices=1, **changed):
        options = parse_argv(tiny.arguments(workdir, **CHANGED | changed))
        options.workdir.create()
        self.said, self.workdir = [], workdir
        console = Console(options.config.steps, every_seconds=0)
        console.log = self.said.append
        text = prepare_data(options.config, workdir=options.workdir, log=console.log)
        options.workdir.write_config(options.config, options.overrides)
        self.config, self.text = options.config, text
        run = Trainer(
            options.config,
            workdir=options.workdir,
            text=text,
            console=console,
            devices=jax.devices()[:devices],
        )
        save = run._checkpointer.save

        def keep(state, *rest, **how):
            save(state, *rest, **how)
            self.state = jax.device_get(state)

        run._checkpointer.save = keep
        self.progress = run.train(StopAfter(steps_asked))
        with (workdir / "metrics.jsonl").open(encoding="utf-8") as file:
            self.records = [json.loads(line) for line in file]

    @property
    def figures(self):
        """The records without what depends on the clock."""
        return [
            {k: v for k, v in r.items() if k not in TIME_FIELDS} for r in self.records
        ]

    @property
    def compiled(self):
        """The shapes that were compiled, as people were told."""
        return [said for said in self.said if said.startswith("Compiling")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return Trained(tmp_path_factory.mktemp("whole") / "run")


def test_several_shapes_are_trained_on_and_evaluated(whole):
    shapes = whole.text.batch_shapes
    assert 2 <= len(shapes) <= 10
    assert len(whole.compiled) == len(set(whole.compiled)) >= 2
    rows, length = shapes[-1]
    assert f"for {rows} rows of {length} slots" in whole.compiled[0]
    assert whole.progress.step == 8
    evaluations = [r for r in whole.records if r["kind"] == "eval"]
    assert [r["step"] for r in evaluations] == [8]


def test_the_layout_of_the_development_set_does_not_change_its_loss(whole):
    packed = dataclasses.replace(whole.text.config, layout="packed")
    sums = compile_evaluation(
        make_module(whole.config.network),
        label_smoothing=whole.config.training.label_smoothing,
        mesh=make_mesh(jax.devices()[:1]),
    )
    batches = whole.text._replace(config=packed).dev_batches(
        row_multiple=1, share=BatchShard()
    )
    figures = summarise(total([sums(whole.state.params, b) for b in batches]))
    (evaluation,) = (r for r in whole.records if r["kind"] == "eval")
    for name in ("loss", "nll", "accuracy"):
        # float32 sums of some hundred terms
        assert figures[name] == pytest.approx(evaluation[name], rel=1e-5)


def test_slots_are_those_of_the_shapes_that_came(whole):
    trained = [r for r in whole.records if r["kind"] == "train"]
    assert len(trained) == 5
    # Rows of the length of their group: with packed rows of 64 it would be 80 %.
    assert all(0.05 < r["padding_fraction"] < 0.5 for r in trained)


def test_stopped_in_mid_epoch_and_resumed_equals_uninterrupted(whole, tmp_path):
    require_same_in_parts(whole, tmp_path / "run")


def test_so_it_does_in_rows_of_two_lengths(tmp_path):
    halved = {
        "data__layout": "packed",
        "data__packed_row_lengths": 2,
        "data__tokens_per_batch": 512,
        "vocabulary__size": 400,
    }
    whole = Trained(tmp_path / "whole", **halved)
    assert len(whole.compiled) == len(set(whole.compiled)) == 2
    require_same_in_parts(whole, tmp_path / "run", **halved)


def require_same_in_parts(whole, parts, **changed):
    """Trains once more, stops in the middle of an epoch, goes on, and compares."""
    stopped = Trained(parts, steps_asked=5, **changed)
    assert stopped.progress.position == (0, 5)
    resumed = Trained(parts, **changed)
    assert resumed.progress.step == 8
    assert len(jax.tree.leaves(whole.state)) > 30
    jax.tree.map(np.testing.assert_array_equal, whole.state, resumed.state)
    assert resumed.figures == whole.figures


@pytest.mark.soak  # Packed batches do so every day.
def test_eight_devices_agree_with_one(whole, tmp_path):
    shared = Trained(tmp_path / "run", devices=8)
    assert any("slots are empty" in said for said in shared.said)
    for one, eight in zip(whole.figures, shared.figures, strict=True):
        # float32 sums in another order, up to eight Adam steps on
        np.testing.assert_allclose(one.get("loss", 0), eight.get("loss", 0), rtol=1e-4)


def test_the_layout_of_a_run_cannot_change():
    grouped = parse({"data": {"layout": "length_buckets"}})
    refused = forbidden_changes(Config(), grouped)
    assert len(refused) == 1
    assert refused[0].startswith("data.layout was 'packed' when this run began")
