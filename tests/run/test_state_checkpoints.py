"""The training state is saved and restored by one process or several.

Seen to fail: if only process 0 checks that it can write, and without the failure set if
another process cannot (exit 0, and nothing saved); without `_failure_logged` (a full
disk ends the run), and if `wait` does not raise it; and with `quarantine` before the
fingerprints are checked.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.config import Config
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.errors import DataError
from t2t_jax.run.state_checkpoints import RunCheckpointer
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import RunProgress
from t2t_jax.training.state import TrainState


class OneOfTwo:
    """One of two processes; the other one publishes `theirs`, or the same text."""

    count, newest = 2, 0

    def __init__(self, index, theirs=""):
        self.index, self.published, self.theirs = index, {}, theirs

    @property
    def is_first(self):
        return self.index == 0

    def publish(self, name, text):
        assert name not in self.published, "a name is used once"
        self.published[name] = text

    def receive(self, name):
        if name.startswith("newest step"):
            return str(self.newest)
        mine = self.published.get(name, self.published.get(f"{name}/{self.index}"))
        return self.theirs or mine or next(reversed(self.published.values()))


def state():
    params = {"bias": jnp.arange(3.0)}
    return TrainState(jnp.int32(0), params, jax.tree.map(jnp.ones_like, params))


def snapshots(path, processes, logged):
    return RunCheckpointer(
        Config(),
        workdir=Workdir(path),
        init=state,
        mesh=make_mesh(jax.devices()[:1]),
        fingerprints={},
        log=logged.append,
        processes=processes,
    )


def save(opened, step):
    opened.save(state(), RunProgress(step=step), kinds=("periodic",), scores={})


@pytest.mark.parametrize("index", [0, 1])
def test_what_is_saved_comes_back_and_every_question_has_its_own_name(tmp_path, index):
    processes, logged = OneOfTwo(index), []
    opened = snapshots(tmp_path, processes, logged)
    for step in (5, 7):
        save(opened, step)
    opened.wait()
    processes.newest = 7
    restored, progress = opened.resume()
    assert (int(restored.step), progress.step) == (7, 7)
    np.testing.assert_array_equal(restored.params["bias"], [0, 1, 2])
    assert logged == [f"Resuming from step 7 in {tmp_path}."]


def test_damage_stays_where_it_is_if_the_text_is_another(tmp_path):
    opened = snapshots(tmp_path, SINGLE_PROCESS, [])
    opened._fingerprints = {"train": "same"}
    for step in (5, 7):
        save(opened, step)
    opened.wait()
    (tmp_path / "checkpoints" / "7" / "meta" / "metadata").write_text("")
    opened._fingerprints = {"train": "other"}
    with pytest.raises(DataError):
        opened.resume()
    assert (tmp_path / "checkpoints" / "7").is_dir()
    opened._fingerprints = {"train": "same"}
    assert opened.resume()[1].step == 5
    assert (tmp_path / "checkpoints" / "corrupt-7").is_dir()
