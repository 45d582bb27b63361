import gc

import jax
import pytest

from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.devices.sharding.mesh import make_mesh


@pytest.fixture
def checkpoints(tmp_path):
    opened = CheckpointWriter(tmp_path / "checkpoints", keep=2)
    yield opened
    opened.wait()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind():
    yield
    gc.collect()


@pytest.fixture
def one():
    return make_mesh(jax.devices()[:1])
