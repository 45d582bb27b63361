import gc

import jax
import pytest

from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.devices.sharding.mesh import make_mesh
from tests.checkpointing.small_states import save


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


@pytest.fixture
def chosen(checkpoints):
    """Opens, for reading, checkpoints of which an early one is the best."""
    save(checkpoints, 2, "periodic", bleu=30.0)
    save(checkpoints, 3, "periodic", bleu=12.0)
    save(checkpoints, 7, "final")
    return CheckpointReader(checkpoints.directory)
