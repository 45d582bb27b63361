"""The training state is saved and restored by one process or several.

Seen to fail: if only process 0 checks that it can write, and without the failure set if
another process cannot (exit 0, and nothing saved); without `_log_failure` (a full disk
ends the run), and if `wait` does not raise it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
from t2t_jax.config import Config
from t2t_jax.errors import StorageError
from t2t_jax.run.state_checkpoints import RunCheckpointer
from t2t_jax.run.workdir import Workdir
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.progress import RunProgress
from t2t_jax.training.state import TrainState


class OneOfTwo:
    """One of two processes; the other one publishes `theirs`, or the same text."""

    count = 2

    def __init__(self, index, theirs=""):
        self.index, self.published, self.theirs = index, {}, theirs

    @property
    def is_first(self):
        return self.index == 0

    def publish(self, name, text):
        assert name not in self.published, "a name is used once"
        self.published[name] = text

    def receive(self, name):
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
    opened.save(state(), RunProgress(step=step), kinds=("periodic",), bleu=None)


@pytest.mark.parametrize("index", [0, 1])
def test_what_is_saved_comes_back_and_every_question_has_its_own_name(tmp_path, index):
    processes, logged = OneOfTwo(index), []
    opened = snapshots(tmp_path, processes, logged)
    for step in (5, 7):
        save(opened, step)
    opened.wait()
    for step in (5, 7, 5):
        restored, progress = opened.restore(step)
        assert (int(restored.step), progress.step) == (step, step)
        np.testing.assert_array_equal(restored.params["bias"], [0, 1, 2])
    assert logged == []


@pytest.mark.parametrize("older", [False, True])
def test_without_an_evaluation_no_best_bleu_is_saved(tmp_path, monkeypatch, older):
    if older:
        monkeypatch.setattr(RunProgress, "to_dict", RunProgress._asdict)
    opened = snapshots(tmp_path, OneOfTwo(0), [])
    save(opened, 5)
    opened.wait()
    saved = Checkpoints(tmp_path / "checkpoints").meta(5)["progress"]
    assert ("best_bleu" in saved) == older
    assert opened.restore(5)[1].best_bleu == -1.0


def test_each_process_checks_that_it_can_write_and_shares_the_result(tmp_path):
    (tmp_path / "checkpoints").write_text("in the way")
    processes, logged = OneOfTwo(1), []
    opened = snapshots(tmp_path, processes, logged)
    save(opened, 5)
    assert list(processes.published.values()) == ["0"]
    assert len(logged) == 1
    with pytest.raises(StorageError, match="Step 5 could not be saved"):
        opened.wait()


@pytest.mark.parametrize("index", [0, 1])
def test_if_another_process_cannot_write_nothing_is_saved_and_that_is_logged(
    tmp_path, index
):
    logged = []
    opened = snapshots(tmp_path, OneOfTwo(index, theirs="0"), logged)
    save(opened, 5)
    assert list((tmp_path / "checkpoints").iterdir()) == []
    assert logged[0].startswith("WARNING: Step 5 could not be saved in ")
    with pytest.raises(StorageError, match="another process cannot write there"):
        opened.wait()


@pytest.mark.parametrize("index", [0, 1])
def test_what_another_process_cannot_read_is_damage(tmp_path, index):
    processes = OneOfTwo(index)
    opened = snapshots(tmp_path, processes, [])
    save(opened, 5)
    opened.wait()
    processes.theirs = "0"
    with pytest.raises(
        CorruptCheckpointError, match="another process could not read it"
    ):
        opened.restore(5)
