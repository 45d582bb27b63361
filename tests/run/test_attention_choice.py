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
from t2t_jax.run.attention_choice import choose_attention
from tests.integration.tiny import TINY


@pytest.mark.parametrize(
    ("mesh", "kernel"), [({"data": 2}, "cudnn"), ({"data": 2, "tensor": 2}, "auto")]
)
def test_devices_and_mesh_decide(monkeypatch, mesh, kernel):
    monkeypatch.setattr(jax_internals, "has_cudnn", lambda: True)
    gpu = SimpleNamespace(platform="gpu", compute_capability="9.0")
    axes = {"data": 1, "fsdp": 1, "tensor": 1, **mesh}
    gpus = np.full(tuple(axes.values()), gpu)
    asked = SimpleNamespace(devices=gpus, shape=axes, size=gpus.size)
    chosen, line = choose_attention(Config(), asked)
    assert chosen.model.attention == kernel
    assert dataclasses.replace(chosen, model=Config().model) == Config()
    assert line == ("model.attention=auto: cudnn is used." * (kernel == "cudnn"))


def test_a_run_records_what_computed_its_attention(tmp_path):
    values = {
        **TINY,
        "model.attention": "cudnn",
        "steps": 1,
        "data.cache_dir": str(tmp_path / "cache"),
        "evaluation.every_steps": 0,
    }
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
