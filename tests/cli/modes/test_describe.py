import dataclasses
import json

import pytest

from t2t_jax.cli.modes.describe import check_mesh, count_pairs_of
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.errors import ConfigError, DataError
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.run.workdir import Workdir

CONFIG = dataclasses.replace(
    Config(),
    data=DataConfig(train="phrasebook:train:300", dev="phrasebook:dev:11"),
)


def test_corpora_are_counted_unless_the_run_has_done_so(tmp_path):
    off = dataclasses.replace(CONFIG, evaluation=EvaluationConfig(every_steps=0))
    none, run = Workdir(tmp_path / "none"), Workdir(tmp_path)
    found = count_pairs_of(CONFIG, workdir=none)
    assert {part: told["pairs"] for part, told in found.items()} == {
        **{"train": 300, "dev": 11}
    }
    assert list(count_pairs_of(off, workdir=none)) == ["train"]
    told = {"spec": "text:a,b", "mean_length": {"source": 5.0, "target": 6.0}}
    record = {"train": {**told, "counts": {"read": 9, "kept": 7}}}
    (tmp_path / "data.json").write_text(json.dumps(record))
    found = count_pairs_of(off, workdir=run)
    assert found == {"train": {**told, "pairs": 7, "note": ""}}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"train": 3, "dev": 4}'])
def test_a_damaged_record_is_named(tmp_path, text):
    (tmp_path / "data.json").write_text(text)
    with pytest.raises(DataError, match=r"data\.json is damaged"):
        count_pairs_of(CONFIG, workdir=Workdir(tmp_path))


@pytest.mark.parametrize(
    ("config", "devices"),
    [
        (MeshConfig(), 7),
        (MeshConfig(fsdp=2, tensor=3), 12),
        (MeshConfig(data=5, fsdp=2, tensor=3), 30),
        (MeshConfig(data=5, fsdp=2, tensor=3), 0),
        (MeshConfig(fsdp=2), 0),
    ],
)
def test_devices_that_make_the_mesh_are_described(config, devices):
    check_mesh(config, devices=devices)


@pytest.mark.parametrize(
    ("config", "devices", "message"),
    [
        (
            MeshConfig(data=5, fsdp=2),
            20,
            r"^--devices=20 does not fit mesh data=5 x fsdp=2 x tensor=1, which needs "
            r"10\. .* change config\.mesh\.$",
        ),
        (MeshConfig(data=2, fsdp=-1, tensor=3), 4, "which needs a multiple of 6\\."),
    ],
)
def test_devices_that_contradict_the_mesh_are_refused(config, devices, message):
    with pytest.raises(ConfigError, match=message):
        check_mesh(config, devices=devices)
