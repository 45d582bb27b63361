"""Runs with other optimizers and with a moving average, on the real command line.

Seen to fail: with `state.params` saved as the item `params` of a run with a moving
average; with the average restored as the parameters.
"""

import numpy as np
import pytest

import t2t_jax
from tests.faults import running
from tests.integration import tiny

EMA = {
    "optimizer__name": "muon",
    "optimizer__weight_decay": 0.1,
    "training__ema_decay": 0.6,
}
SCHEDULE_FREE = {
    "optimizer__name": "schedule_free",
    "training__frozen": "encoder/*/self_attention/query",
    "training__micro_batches": 2,
}
ADAMW = {"optimizer__name": "adamw", "optimizer__weight_decay": 0.1}
HOW = {
    "steps": 6,
    "model__dropout": 0.3,
    "optimizer__warmup_steps": 3,
    "checkpoint__every_steps": 1,
    "checkpoint__keep": 20,
    "evaluation__every_steps": 0,
    "logging__every_steps": 1,
}


def items(workdir, step, item):
    leaves = running.parameters(workdir, step)
    return {
        path.removeprefix(item): leaf
        for path, leaf in leaves.items()
        if path.startswith(item)
    }


@pytest.fixture(scope="module")
def averaged(tmp_path_factory):
    """A run with Muon and a moving average, six steps long."""
    workdir = tmp_path_factory.mktemp("averaged") / "run"
    running.finish(workdir, fresh=True, **HOW, **EMA)
    return workdir


def test_a_run_with_muon_and_an_average_resumes_to_the_same_bits(averaged, tmp_path):
    parts = tmp_path / "parts" / "run"
    running.finish(parts, code=75, fault="term@3", **HOW, **EMA)
    assert "Resuming from step 3" in running.finish(parts, **HOW, **EMA)
    running.require_bit_equal(
        running.parameters(parts, 6), running.parameters(averaged, 6)
    )
    assert running.metrics(parts) == running.metrics(averaged)


@pytest.mark.parametrize("how", [SCHEDULE_FREE, ADAMW], ids=["schedule_free", "adamw"])
def test_another_optimizer_resumes_to_the_same_bits(how, tmp_path):
    whole, parts = tmp_path / "whole" / "run", tmp_path / "parts" / "run"
    running.finish(whole, fresh=True, **HOW, **how)
    running.finish(parts, code=75, fault="term@3", **HOW, **how)
    assert "Resuming from step 3" in running.finish(parts, **HOW, **how)
    running.require_bit_equal(
        running.parameters(parts, 6), running.parameters(whole, 6)
    )
    assert running.metrics(parts) == running.metrics(whole)


def test_eight_devices_continue_a_run_of_one(averaged, tmp_path):
    workdir = tmp_path / "run"
    how = {**HOW, **EMA}
    running.finish(workdir, code=75, fault="term@3", **how)
    mesh = {"mesh__fsdp": 2, "mesh__tensor": 2, "mesh__shard_optimizer": True}
    said = running.finish(workdir, devices=8, **how, **mesh)
    assert "Resuming from step 3" in said
    for one, two in zip(
        running.metrics(workdir)[:6], running.metrics(averaged)[:6], strict=True
    ):
        # float32 sums in another order
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-4)


def test_what_is_saved_as_the_parameters_is_the_average_of_what_is_trained(averaged):
    average = items(averaged, 1, "params")
    for step in range(2, 7):
        trained = items(averaged, step, "trained")
        decay = min(0.6, step / (9 + step))  # of update t = step - 1
        for path, leaf in trained.items():
            average[path] = decay * average[path] + (1 - decay) * leaf
        saved = items(averaged, step, "params")
        for path, leaf in saved.items():
            # float32 sums of about 1
            np.testing.assert_allclose(leaf, average[path], atol=1e-6)
    moved = [np.abs(saved[path] - trained[path]).max() for path in trained]
    assert max(moved) > 1e-4


def test_a_model_that_is_loaded_has_the_average(averaged):
    model = t2t_jax.load(averaged, checkpoint="last")
    saved = items(averaged, 6, "params")
    np.testing.assert_array_equal(
        model.params["embedding"]["table"], saved["['embedding']['table']"]
    )


@pytest.mark.parametrize(
    ("key", "value"), [("training.ema_decay", 0.5), ("optimizer.name", "adamw")]
)
def test_another_choice_on_resume_is_refused(averaged, key, value):
    refused = tiny.run(f"--workdir={averaged}", f"--config.{key}={value}")
    assert refused.returncode == 78
    assert f"{key} was" in refused.stderr.decode()
