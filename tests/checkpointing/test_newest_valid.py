"""The selection of the checkpoint to resume from, on all processes.

Seen to fail: where `agreed_latest_step` waits for nobody, and where `read` or `check`
is outside of `failing_together`.
"""

from pathlib import Path

import pytest

from t2t_jax import files
from t2t_jax.checkpointing.newest_valid import agreed_latest_step, restore_latest_valid
from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.devices.distributed import processes
from t2t_jax.errors import InputMissingError, UnavailableError
from tests.checkpointing.small_states import save


@pytest.fixture
def folder(tmp_path):
    writer = CheckpointWriter(tmp_path, keep=2)
    for step in (5, 10):
        save(writer, step, "periodic")
    return CheckpointReader(tmp_path)


def test_where_the_machine_fails_nothing_is_set_aside(folder, monkeypatch):
    (folder.directory / "10" / "meta" / "metadata").write_text("{}")
    read = folder.read

    def fail(step, like):
        if step == 5:
            raise UnavailableError("out of memory")
        return read(step, like)

    monkeypatch.setattr(folder, "read", fail)
    with pytest.raises(UnavailableError):
        restore_latest_valid(folder, {}, log=print)
    assert folder.steps() == [5, 10]


def test_a_state_of_step_0_is_valid_beside_what_was_set_aside(tmp_path):
    save(CheckpointWriter(tmp_path, keep=2), 0, "periodic")
    (tmp_path / "corrupt-5").mkdir()
    assert restore_latest_valid(CheckpointReader(tmp_path), {}, log=print).step == 0


@pytest.mark.parametrize("answers", [[False], [True, False]])
def test_what_another_process_cannot_read_or_verify_is_damage_here(
    folder, monkeypatch, answers
):
    published = []

    def reduced(_, name, number):
        published.append((name, number))
        return answers.pop(0) if answers and published[1:] else True

    monkeypatch.setattr(processes, "all_reduce_min", reduced)
    count = len(answers)
    restored = restore_latest_valid(folder, {}, log=print)
    assert restored.step == 5
    assert [e.reason for e in restored.corrupt] == ["another process could not read it"]
    names = ["read checkpoint 10", "check checkpoint 10"][:count]
    names += ["read checkpoint 5", "check checkpoint 5"]
    assert published[1:] == [(name, 1) for name in names]


class Second:
    """The second of two processes; the first sees step 12."""

    index, count, is_first = 1, 2, False

    def receive(self, name):
        return "12"

    def publish(self, name, text):
        pass


class Lagging:
    """A directory of checkpoints that shows what is in it only after some looks."""

    directory, processes = Path("run/checkpoints"), Second()

    def __init__(self, *looks):
        self._looks = list(looks)

    def steps(self):
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(files.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        files.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )


@pytest.mark.usefixtures("clock")
def test_a_process_waits_until_it_sees_the_step_that_the_first_one_sees():
    assert agreed_latest_step(Lagging([5], [5], [5, 12])) == 12


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("seen", [[], [5], [5, 12, 20]])
def test_a_process_that_keeps_seeing_another_step_fails(seen):
    with pytest.raises(InputMissingError, match=r"1 sees .* process 0 sees 12"):
        agreed_latest_step(Lagging(seen))
