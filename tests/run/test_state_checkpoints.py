"""Damage is set aside by a run with its own text alone.

Seen to fail: with `quarantine` before the fingerprints are checked.
"""

import jax
import jax.numpy as jnp
import pytest

from t2t_jax.config import Config
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.errors import DataError
from t2t_jax.run.state_checkpoints import RunCheckpointer
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress_and_patience import RunProgress
from t2t_jax.training.state import TrainState


def state():
    params = {"bias": jnp.arange(3.0)}
    return TrainState(jnp.int32(0), params, jax.tree.map(jnp.ones_like, params))


def snapshots(path):
    return RunCheckpointer(
        Config(),
        workdir=Workdir(path),
        init_state=state,
        shapes=jax.eval_shape(state),
        mesh=make_mesh(jax.devices()[:1]),
        fingerprints={},
        log=print,
        processes=SINGLE_PROCESS,
    )


def test_damage_stays_where_it_is_if_the_text_is_another(tmp_path):
    opened = snapshots(tmp_path)
    opened.fingerprints = {"train": "same"}
    for step in (5, 7):
        opened.save(state(), RunProgress(step=step), kinds=("periodic",), scores={})
    opened.wait()
    (tmp_path / "checkpoints" / "7" / "meta" / "metadata").write_text("")
    opened.fingerprints = {"train": "other"}
    with pytest.raises(DataError):
        opened.resume()
    assert (tmp_path / "checkpoints" / "7").is_dir()
    opened.fingerprints = {"train": "same"}
    assert opened.resume()[1].step == 5
    assert (tmp_path / "checkpoints" / "corrupt-7").is_dir()
