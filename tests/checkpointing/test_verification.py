"""A checkpoint is restored only if it is bitwise equal to what was saved.

Seen to fail: without the comparison in `check`; with the checksums of each item
compared before those of the next are computed; without
`_check_regular_file` (reading a pipe blocks); with another format reported as corrupt.
Another model: tests/checkpointing/test_own_state.py.
"""

import json
import os
import shutil
import signal

import numpy as np
import orbax.checkpoint as ocp
import pytest

from t2t_jax.checkpointing import reader as reading
from t2t_jax.checkpointing.checksums import json_digest
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
from t2t_jax.errors import DataError
from tests.checkpointing.small_states import like, params_of, save, trained


def other_value(folder):
    """Writes another array into a checkpoint, which Orbax reads without an error."""
    changed = params_of(5)
    changed["bias"] = np.nextafter(changed["bias"], np.float32(9))
    shutil.rmtree(folder / "params")
    with ocp.StandardCheckpointer() as writer:
        writer.save(folder / "params", changed)


def test_all_checksums_come_before_any_comparison(checkpoints, one, monkeypatch):
    params, state = trained(7)
    checkpoints.save(5, params=params, optimizer=state, meta={"kinds": []})
    checkpoints.wait()
    other_value(checkpoints.directory / "5")
    summed, checksums = [], reading.checksums
    monkeypatch.setattr(
        reading, "checksums", lambda tree: summed.append(tree) or checksums(tree)
    )
    wanted = {"params": like(params, one), "optimizer": like(state, one)}
    items, meta = checkpoints.read(5, wanted)
    with pytest.raises(CorruptCheckpointError, match="in params"):
        checkpoints.check(5, items, meta)
    assert len(summed) == 2


def test_another_format_is_an_error_but_not_corrupt(checkpoints, one):
    save(checkpoints, 5, "final")
    path = checkpoints.directory / "5" / "meta" / "metadata"
    sealed = json.loads(path.read_text()) | {"format": 2}
    sealed.pop("digest")
    path.write_text(json.dumps(sealed | {"digest": json_digest(sealed)}))
    for read in (
        lambda: checkpoints.meta(5),
        lambda: checkpoints.verify(5),
        lambda: checkpoints.params(5, like=like(params_of(5), one)),
    ):
        with pytest.raises(DataError, match=r"must have format 1 .* has 2") as e:
            read()
        assert not isinstance(e.value, CorruptCheckpointError)


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def link(path):
    path.symlink_to(path.rename(path.parents[3] / "elsewhere"))


@pytest.fixture
def _seconds():
    def stop(*_):
        raise AssertionError("it was opened, and waited for")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_seconds")
@pytest.mark.parametrize("other", [pipe, link, device])
@pytest.mark.parametrize(
    "name",
    ["_CHECKPOINT_METADATA", "params/_METADATA", "params/manifest.ocdbt", "params/d/*"],
)
def test_only_regular_files_are_opened(checkpoints, one, name, other):
    save(checkpoints, 5, "final")
    other(next((checkpoints.directory / "5").glob(name)))
    for read in (
        lambda: checkpoints.params(5, like=like(params_of(5), one)),
        lambda: checkpoints.verify(5),
    ):
        with pytest.raises(CorruptCheckpointError, match="must be a file, and is a"):
            read()
