import dataclasses
import json

import jax
import pytest

from t2t_jax.checkpointing.config import CheckpointConfig
from t2t_jax.config import Config, parse
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.run.description import summary
from t2t_jax.run.description.costs import Compiled, Memory
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


def test_it_is_json_with_the_configuration_and_the_batch_shared_evenly():
    told = describe(CONFIG, mesh=make_mesh(jax.devices()[:3]), peak_tflops=2.0, mfu=0.5)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    # What programs rely on.
    assert set(told) >= {
        *("config", "differences", "variations", "departures", "exact"),
        *("flops_per_step", "compiler_flops_per_step", "batch", "memory"),
        *("checkpoint_bytes", "estimate", "data", "learning_rate", "parameters"),
    }
    assert parse(told["config"]) == CONFIG
    batch = told["batch"]
    # 101 slots hold 5 rows of 17; 3 devices share 6.
    assert (batch["rows"], batch["row_length"], batch["slots_per_side"]) == (6, 17, 102)
    assert (batch["rows_per_device"], batch["empty_rows"]) == (2, 1)
    assert batch["mesh"] == {"data": 3, "fsdp": 1, "tensor": 1}
    assert batch["compute_dtype"] == "float32"  # auto, on the CPUs of this mesh


@pytest.fixture
def uncompiled(monkeypatch):
    """Describes without the compiler, which would take its time for large models."""
    compiled = Compiled(1.0, Memory(4, 3, 2, 1), "")
    monkeypatch.setattr(summary, "compile_costs", lambda *_, **__: compiled)
    return lambda config, **given: describe(
        config, mesh=make_mesh(jax.devices()[:1]), **given
    )


def test_base_is_the_paper_s(uncompiled):
    told = uncompiled(Config())
    assert told["row"] == "base"
    assert told["parameters"]["total"] == 63_045_632
    assert told["flops_per_token_pair"]["flops"] == pytest.approx(381.0e6, rel=0.01)
    assert told["flops_per_token_pair"]["sentence_length"] == 28
    rate = told["learning_rate"]
    assert rate["step"] == 4000
    assert rate["last"] == pytest.approx(6.988e-4 / 5, rel=1e-3)  # sqrt(25) = 5
    assert told["memory"]["compiler"]["total"] == 4 + 3 + 2 - 1
    assert told["paper_costs"] == {"hours": 12.0, "flops": 3.3e18}
    assert told["differences"] == told["variations"] == []
    assert told["estimate"] is told["data"] is told["epochs"] is None


def test_the_results_in_the_paper_are_those_of_its_rows_only(uncompiled):
    told = uncompiled(Config())["paper_results"]
    assert told["test_bleu"] == 27.3
    departing = dataclasses.replace(Config(), optimizer=OptimizerConfig(beta2=0.997))
    assert uncompiled(departing)["paper_results"]["departs_here"] == ["optimizer.beta2"]
    assert told["departs_here"] == []
    assert uncompiled(dataclasses.replace(Config(), steps=7))["paper_results"] is None
