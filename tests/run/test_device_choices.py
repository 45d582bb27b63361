"""What a run records of the kernel of its attention, and of its precision."""

import dataclasses
import io
import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import t2t_jax
from t2t_jax import jax_internals
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.processor import CPU_DTYPE
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.device_choices import choose_attention
from tests.integration.tiny import TINY


def config(attention="auto", **data):
    model = TransformerConfig(attention=attention)
    return Config(model=model, data=DataConfig(max_length=64, **data))


PLAIN = "plain is used, since data.row_length=64 is no multiple of 128"


@pytest.mark.parametrize(
    ("mesh", "config", "kernel", "said"),
    [
        ({"data": 2}, Config(), "cudnn", "cudnn is used"),
        ({"data": 2, "tensor": 2}, Config(), "auto", ""),
        ({}, config(row_length=64), "auto", ""),
        ({}, config("cudnn", row_length=64), "plain", PLAIN),
        ({}, config(row_length=128, packed_row_lengths=2), "cudnn", "cudnn is used"),
        ({}, config(row_length=64, layout="length_buckets"), "cudnn", "cudnn is used"),
    ],
)
def test_devices_mesh_and_rows_decide(monkeypatch, mesh, config, kernel, said):
    monkeypatch.setattr(jax_internals, "has_cudnn", lambda: True)
    gpu = SimpleNamespace(platform="gpu", compute_capability="9.0")
    axes = {"data": 1, "fsdp": 1, "tensor": 1, **mesh}
    gpus = np.full(tuple(axes.values()), gpu)
    asked = SimpleNamespace(devices=gpus, shape=axes, size=gpus.size)
    chosen, line = choose_attention(config, asked)
    assert chosen.model.attention == kernel
    assert dataclasses.replace(chosen, model=config.model) == config
    assert line == (said and f"model.attention={config.model.attention}: {said}.")


@pytest.fixture
def train(tmp_path):
    """Trains so many steps of the tiny run; returns what it said and its config."""

    def train(steps, **changes):
        changes |= {"steps": steps, "data.cache_dir": str(tmp_path / "cache")}
        changes["evaluation.every_steps"] = 0
        config, log = t2t_jax.load_config("phrasebook"), io.StringIO()
        config.update_from_flattened_dict({**TINY, **changes})
        t2t_jax.train(config, tmp_path / "run", log=log, devices=jax.devices()[:1])
        saved = json.loads((tmp_path / "run" / "config.json").read_text())
        return log.getvalue(), saved["model"]

    return train


def test_a_run_records_what_computed_its_attention(train):
    said, model = train(1, **{"model.attention": "cudnn"})
    assert model["attention"] == "plain"
    assert "model.attention=cudnn: plain is used" in said


def test_a_run_keeps_the_bfloat16_of_its_first_processor(train, monkeypatch, tmp_path):
    monkeypatch.setenv(CPU_DTYPE, "bfloat16")
    assert "model.compute_dtype=auto: bfloat16" in train(1)[0]
    monkeypatch.setenv(CPU_DTYPE, "float32")
    said, model = train(2)
    assert model["compute_dtype"] == "bfloat16"
    assert "computing in bfloat16" in said
    assert "does not multiply bfloat16" in said
    found = t2t_jax.load(tmp_path / "run")
    assert found.module.config.compute_dtype == "bfloat16"  # in which it scores
    assert found.step_model.model.config.compute_dtype == "float32"
    with pytest.raises(t2t_jax.UserError, match=r"model\.compute_dtype was"):
        train(3, **{"model.compute_dtype": "float32"})


def test_a_run_in_float32_stays_so_on_another_processor(train, monkeypatch, tmp_path):
    assert train(1)[1]["compute_dtype"] == "auto"
    monkeypatch.setenv(CPU_DTYPE, "bfloat16")
    said, model = train(2)
    assert model["compute_dtype"] == "auto"
    assert "computing in float32" in said
    found = t2t_jax.load(tmp_path / "run").step_model.model
    assert found.config.compute_dtype == "bfloat16"
