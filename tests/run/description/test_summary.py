import dataclasses
import json

import jax
import pytest

from t2t_jax.checkpointing.config import CheckpointConfig
from t2t_jax.config import Config, parse
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.run.description import summary
from t2t_jax.run.description.summary import describe
from t2t_jax.training.config import OptimizerConfig
from tests.model.tiny import TINY

DATA = DataConfig(tokens_per_batch=5 * 17 + 16, row_length=17, max_length=17)
CONFIG = dataclasses.replace(
    Config(),
    steps=11,
    data=DATA,
    model=dataclasses.replace(TINY, vocab_size=37_000),
    checkpoint=CheckpointConfig(keep=7),
)
PAIRS = {
    "train": {
        "spec": "text:a,b",
        "pairs": 19,
        "note": "",
        "mean_length": {"source": 3.0, "target": 4.5},
    },
    "dev": {"spec": "text:c,d", "pairs": None, "note": "c: no such file."},
}


@pytest.fixture(scope="module")
def description():
    return describe(
        CONFIG, mesh=make_mesh(jax.devices()[:3]), data=PAIRS, peak_tflops=2.0, mfu=0.5
    )


def test_it_is_json_with_what_programs_rely_on(description):
    again = json.loads(json.dumps(description, allow_nan=False))
    assert again == description
    assert set(again) >= {
        *("config", "differences", "variations", "departures", "exact"),
        "parameters",
        *("flops_per_step", "compiler_flops_per_step", "batch", "memory"),
        *("checkpoint_bytes", "estimate", "data", "learning_rate"),
    }


def test_the_configuration_comes_back_complete(description):
    assert parse(description["config"]) == CONFIG


def test_the_batch_is_shared_evenly_with_an_empty_row(description):
    # 101 slots hold 5 rows of 17; 3 devices share 6.
    assert description["batch"] == {
        "slots_per_side": 6 * 17,
        "rows": 6,
        "row_length": 17,
        "devices": 3,
        "mesh": {"data": 3, "fsdp": 1, "tensor": 1},
        "rows_per_device": 2,
        "empty_rows": 1,
        "layout": "packed",
        "shorter_rows": [],
        "micro_batches": 1,
        "compute_dtype": "float32",  # auto, on the CPUs of this mesh
        "remat": False,
    }


@pytest.fixture
def uncompiled(monkeypatch):
    """Describes without the compiler, which would take its time for large models."""
    from t2t_jax.run.description.costs import Compiled, Memory

    monkeypatch.setattr(
        summary, "compile_costs", lambda *_, **__: Compiled(1.0, Memory(4, 3, 2, 1), "")
    )
    return lambda config, **given: describe(
        config, mesh=make_mesh(jax.devices()[:1]), **given
    )


def test_base_is_the_paper_s(uncompiled):
    told = uncompiled(Config())
    assert told["row"] == "base"
    assert told["parameters"]["total"] == 63_045_632
    assert told["flops_per_token_pair"]["flops"] == pytest.approx(381.0e6, rel=0.01)
    assert told["flops_per_token_pair"]["sentence_length"] == 28
    assert told["learning_rate"] == {
        "peak": pytest.approx(6.988e-4, rel=1e-3),
        "step": 4000,
        "last": pytest.approx(6.988e-4 / 5, rel=1e-3),  # sqrt(100,000 / 4,000) = 5
    }
    assert told["memory"]["compiler"]["total"] == 4 + 3 + 2 - 1
    assert told["paper_costs"] == {"hours": 12.0, "flops": 3.3e18}
    assert told["differences"] == told["variations"] == []
    assert told["estimate"] is told["data"] is told["epochs"] is None


def test_hours_by_hand(uncompiled, monkeypatch):
    # 9e15 FLOP a step at 100e12 x 0.25 a second: 360 s each, 10 an hour.
    monkeypatch.setattr(summary, "step_flops", lambda *_, **__: {"encoder": 9e15})
    config = dataclasses.replace(Config(), steps=40)
    told = uncompiled(config, peak_tflops=100.0, mfu=0.25)["estimate"]
    assert told["hours"] == pytest.approx(4.0)


def test_the_results_in_the_paper_are_those_of_its_rows_only(uncompiled):
    told = uncompiled(Config())["paper_results"]
    assert told["test_bleu"] == 27.3
    other = OptimizerConfig(beta2=0.997)
    departing = dataclasses.replace(Config(), optimizer=other)
    assert uncompiled(departing)["paper_results"]["departs_here"] == ["optimizer.beta2"]
    assert told["departs_here"] == []
    assert uncompiled(dataclasses.replace(Config(), steps=7))["paper_results"] is None
