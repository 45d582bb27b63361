"""What a run records of the kernel of its attention."""

import dataclasses
import io
import json

import jax
import pytest

import t2t_jax
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.model import attention_kernels
from t2t_jax.model.attention_kernels import DeviceSupport
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.attention_choice import choose_attention
from t2t_jax.training.config import TrainingConfig
from tests.integration.tiny import TINY


@pytest.fixture
def _hopper(monkeypatch):
    support = DeviceSupport("gpu", (9, 0))
    monkeypatch.setattr(attention_kernels, "device_support", lambda _: support)
    resolve = attention_kernels.resolve_compute_dtype
    monkeypatch.setattr(
        attention_kernels,
        "resolve_compute_dtype",
        lambda config, platform: resolve(config, "gpu"),
    )


def config_of(attention, **changes):
    model = TransformerConfig(attention=attention)
    return dataclasses.replace(Config(), model=model, **changes)


@pytest.mark.usefixtures("_hopper")
@pytest.mark.parametrize(
    ("attention", "changes", "devices", "used"),
    [
        ("auto", {}, 1, "cudnn"),
        ("cudnn_packed", {}, 1, "cudnn_packed"),
        ("cudnn_packed", {"data": DataConfig(layout="length_buckets")}, 1, "cudnn"),
        ("cudnn_packed", {"training": TrainingConfig(micro_batches=2)}, 1, "cudnn"),
        ("cudnn_packed", {"mesh": MeshConfig(data=2)}, 2, "cudnn"),
    ],
)
def test_data_and_mesh_decide_on_packed_rows(attention, changes, devices, used):
    config = config_of(attention, **changes)
    mesh = make_mesh(jax.devices()[:devices], config=config.mesh)
    chosen, line = choose_attention(config, mesh)
    assert chosen.model.attention == used
    assert (line == "") == (used == attention)
    assert dataclasses.replace(chosen, model=config.model) == config


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
