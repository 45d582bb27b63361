"""Steps compiled for devices that are not here, and what is advised for them."""

import dataclasses
import json
import re

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.topology import parse_topology
from t2t_jax.run.description.summary import describe
from t2t_jax.run.description.topology_costs import TopologyRequest, advise
from t2t_jax.training.config import TrainingConfig
from tests.devices.test_topology import needs_gpu_compiler, needs_tpu_compiler
from tests.model.tiny import TINY

KEYS = {
    *("topology", "devices", "fits", "bytes_parameters", "bytes_optimizer"),
    *("bytes_temporary", "device_memory", "flops", "bytes_accessed", "estimated_ms"),
    *("bound_by", "parts", "collectives", "attention"),
}
GB = 10**9
# Base on 8 devices of 16 GB, of which a step takes a tenth of a second.
COSTS = {
    "device_memory": 16 * GB,
    "bytes_needed": 9 * GB,
    "bytes_parameters": GB,
    "bytes_optimizer": 2 * GB,
    "bytes_temporary": 6 * GB,
    "estimated_ms": 100.0,
    "parts": [{"part": "optimizer", "direction": "", "ms": 4.0}],
    "collectives": [{"exposed_ms": 5.0, "ms": 1.0}],
}
SLOW_UPDATE = {"parts": [{"part": "optimizer", "direction": "", "ms": 16.0}]}


SPLIT = {"mesh": MeshConfig(shard_optimizer=True)}
FEW_ROWS = {"data": DataConfig(tokens_per_batch=12 * 256)}


@pytest.mark.parametrize(
    ("config", "changed", "advice"),
    [
        ({}, {}, ""),
        ({}, SLOW_UPDATE, "mesh.shard_optimizer=True: "),
        (SPLIT, SLOW_UPDATE, ""),
        ({"mesh": MeshConfig(data=1, fsdp=8)}, SLOW_UPDATE, ""),
        ({}, {"collectives": [{"exposed_ms": 11.0, "ms": 11.0}]}, "more data.tokens_p"),
        (FEW_ROWS, {}, "data.tokens_per_batch: 4 of 16 rows are empty"),
        ({"training": TrainingConfig(micro_batches=2)}, {}, "micro_batches=1: it"),
        ({"training": TrainingConfig(micro_batches=4)}, {}, ""),
        ({}, {"bytes_needed": 17 * GB}, "mesh.shard_optimizer=True"),
        (SPLIT, {"bytes_needed": 16.5 * GB}, "training.loss_chunks=8"),
        ({}, {"bytes_needed": 30 * GB, "bytes_temporary": 27 * GB}, "micro_batches=4"),
        ({}, {"bytes_needed": 40 * GB, "bytes_temporary": 24 * GB}, "model.remat=True"),
        ({}, {"bytes_needed": 40 * GB, "bytes_parameters": 20 * GB}, "more devices"),
    ],
)
def test_advice(config, changed, advice):
    config = dataclasses.replace(Config(), **config)
    mesh = make_mesh(**config.mesh.axes)
    costs = {**COSTS, **changed}
    costs["fits"] = costs["bytes_needed"] <= costs["device_memory"]
    found = advise(config, costs, mesh=mesh)
    assert advice in found
    assert bool(found) == bool(advice)
    assert found.startswith("it does not fit: ") == (not costs["fits"])


SMALL = dataclasses.replace(
    Config(),
    data=DataConfig(tokens_per_batch=64 * 128, row_length=128, max_length=32),
    model=dataclasses.replace(
        TINY,
        vocab_size=512,
        num_layers=1,
        d_model=128,
        d_ff=256,
        num_heads=2,
        d_k=64,
        d_v=64,
        compute_dtype="bfloat16",
    ),
)


def described(text, config=SMALL, **options):
    topology = parse_topology(text)
    mesh = make_mesh(topology.devices(), **config.mesh.axes)
    return describe(config, mesh=mesh, request=TopologyRequest(topology, **options))


@needs_gpu_compiler
def test_a_step_and_a_search_compiled_for_gpus(tmp_path):
    file = tmp_path / "step.hlo"
    found = described("gpu:h100:8", decode=True, save_hlo=str(file))
    assert found.keys() >= KEYS
    json.dumps(found, allow_nan=False)
    assert (found["devices"], found["fits"]) == (8, True)
    # 12 bytes a parameter in float32: the parameter and two moments.
    assert found["bytes_optimizer"] == pytest.approx(
        2 * found["bytes_parameters"], 1e-3
    )
    assert 0 < found["estimated_ms"] < 10
    assert found["flops"] == pytest.approx(found["flops_per_step"] / 8, rel=0.1)
    assert {one["kind"] for one in found["collectives"]} == {"all-reduce"}
    text = file.read_text()
    assert "all-reduce-start" in text  # asynchronous
    assert text.count('custom_call_target="__cudnn$fmhaScaleBiasSoftmaxBackward"') == 3
    tokens = SMALL.data.tokens_per_batch // 8
    entry = text[text.index("\nENTRY") :]
    # The logits; their gradient is bfloat16.
    assert len(re.findall(rf"= f32\[{tokens},512\]", entry)) == 1
    assert found["bytes_temporary"] < 26e6
    search = found["decode"]
    assert 0 < search["estimated_ms"] < found["estimated_ms"] * 10
    assert search["sentences_per_second"] > 0
    split = dataclasses.replace(SMALL, mesh=MeshConfig(shard_optimizer=True))
    assert described("gpu:h100:8", split)["bytes_optimizer"] < found["bytes_optimizer"]


@needs_gpu_compiler
@pytest.mark.parametrize(
    ("gpus", "axes"),
    [
        pytest.param("8", {"data": 8}, marks=pytest.mark.soak),
        ("8", {"fsdp": 8}),
        pytest.param("8", {"tensor": 2}, marks=pytest.mark.soak),
        ("8", {"data": 2, "fsdp": 2, "tensor": 2}),
        pytest.param("8x8", {"data": 64}, marks=pytest.mark.soak),
        pytest.param("8x8", {"data": 8, "fsdp": 8}, marks=pytest.mark.soak),
        ("8x8", {"data": 16, "fsdp": 2, "tensor": 2}),
    ],
)
def test_every_mesh_compiles_and_gathers_no_array_to_split_it_again(gpus, axes, capfd):
    mesh = MeshConfig(**axes)
    found = described(f"gpu:h100:{gpus}", dataclasses.replace(SMALL, mesh=mesh))
    assert found["fits"]
    whole = found["parameters"]["total"] * 4
    assert found["bytes_parameters"] <= whole / (mesh.fsdp * mesh.tensor) * 1.1
    assert "full rematerialization" not in capfd.readouterr().err


@needs_tpu_compiler
def test_a_step_and_a_search_compiled_for_tpus():
    found = described("tpu:v5e:2x4", decode=True)
    assert found.keys() >= KEYS
    json.dumps(found, allow_nan=False)
    assert (found["devices"], found["fits"]) == (8, True)
    assert found["flops"] == pytest.approx(found["flops_per_step"] / 8, rel=0.2)
    assert 0 < found["estimated_ms"] < 100
    assert found["decode"]["estimated_ms"] > 0


@needs_tpu_compiler
def test_what_a_compiler_rejects_does_not_fit():
    rows = DataConfig(tokens_per_batch=32 * 100_000, row_length=32, max_length=32)
    model = dataclasses.replace(SMALL.model, vocab_size=4_096)
    large = dataclasses.replace(SMALL, data=rows, model=model)
    found = described("tpu:v5e:1x1", large)
    assert not found["fits"]
    assert found["bytes_needed"] > found["device_memory"]
    assert found["estimated_ms"] is None
    assert found["advice"].startswith("it does not fit: ")
