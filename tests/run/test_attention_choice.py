"""What a run records of the kernel of its attention."""

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
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.description.costs import choose_attention
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


def test_a_run_records_what_computed_its_attention(tmp_path):
    values = {**TINY, "model.attention": "cudnn", "steps": 1}
    values |= {"data.cache_dir": str(tmp_path / "cache"), "evaluation.every_steps": 0}
    config = t2t_jax.load_config("phrasebook")
    config.update_from_flattened_dict(values)
    log, one = io.StringIO(), jax.devices()[:1]
    t2t_jax.train(config, tmp_path / "run", log=log, devices=one)
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["model"]["attention"] == "plain"
    text = "model.attention=cudnn: plain is used, since the device is a CPU."
    assert log.getvalue().count(text) == 1
    # The same command resumes it.
    config.steps = 2
    t2t_jax.train(config, tmp_path / "run", log=log, devices=one)
    assert log.getvalue().count(text) == 2
