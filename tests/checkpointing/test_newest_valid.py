"""The selection of the checkpoint to resume from, on all processes.

Seen to fail: without `quarantine`, without `_require_empty`, where
`agreed_latest_step` waits for nobody, and where `read` or `check` is outside of
`_fails_on_all`.
"""

from pathlib import Path

import pytest

from t2t_jax import files
from t2t_jax.checkpointing import newest_valid
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
from t2t_jax.checkpointing.newest_valid import (
    agreed_latest_step,
    quarantine,
    restore_latest_valid,
)
from t2t_jax.errors import DataError, InputMissingError, UnavailableError


class Folder:
    """Checkpoints of which some are damaged."""

    directory = Path("run/checkpoints")

    def __init__(self, *steps, bad=(), others=()):
        self._steps, self.bad, self._others = list(steps), set(bad), list(others)
        self.aside = []

    def steps(self):
        return list(self._steps)

    def stray_dirs(self):
        return self._others

    def quarantine(self, step):
        self._steps.remove(step)
        self.aside.append(step)
        return self.directory / f"corrupt-{step}"

    def corrupt(self, step, reason):
        return CorruptCheckpointError(self.directory / str(step), reason)

    def read(self, step, like):
        return {"params": f"state {step}"}, {"kinds": [], "digest": "of meta"}

    def check(self, step, items, meta):
        if step in self.bad:
            raise self.corrupt(step, f"reason {step}")

    def files(self, step):
        return {}


def resume(folder):
    """Returns the step that is restored, and what is logged."""
    logged = []
    restored = restore_latest_valid(folder, {}, log=logged.append)
    if restored is None:
        return None, logged
    assert restored.items == {"params": f"state {restored.step}"}
    assert restored.meta == {"kinds": []}
    assert folder.aside == []
    quarantine(folder, restored.corrupt, log=logged.append)
    return restored.step, logged


def test_the_newest_is_used_where_it_is_good():
    folder = Folder(5, 10, 15, bad=[5])
    assert resume(folder) == (15, [])
    assert folder.aside == []


def test_the_damaged_ones_above_the_first_good_one_are_set_aside_and_named():
    folder = Folder(3, 5, 10, 15, bad=[3, 10, 15])
    step, logged = resume(folder)
    assert step == 5
    assert folder.aside == [15, 10]
    assert logged == [
        "WARNING: Checkpoint run/checkpoints/15 is corrupt: reason 15. "
        "Renamed to corrupt-15.",
        "WARNING: Checkpoint run/checkpoints/10 is corrupt: reason 10. "
        "Renamed to corrupt-10.",
    ]


def test_where_none_is_good_all_are_named_and_none_is_touched():
    folder = Folder(5, 10, bad=[5, 10])
    with pytest.raises(DataError) as info:
        resume(folder)
    assert info.value.exit_code == 65
    assert info.value.problems[:2] == (
        "Checkpoint run/checkpoints/10 is corrupt: reason 10.",
        "Checkpoint run/checkpoints/5 is corrupt: reason 5.",
    )
    assert "has no valid checkpoint" in info.value.problems[2]
    assert folder.aside == []


def test_where_the_machine_fails_nothing_is_set_aside():
    folder = Folder(5, 10, 15, bad=[15])

    def read(step, like):
        if step == 10:
            raise UnavailableError("out of memory")
        return {}, {}

    folder.read = read
    with pytest.raises(UnavailableError):
        restore_latest_valid(folder, {}, log=print)
    assert folder.aside == []


@pytest.mark.parametrize("answers", [[False], [True, False]])
def test_what_another_process_cannot_read_or_verify_is_damage_here(
    monkeypatch, answers
):
    published = []

    def reduced(processes, name, number):
        published.append((name, number))
        return answers.pop(0) if answers else True

    monkeypatch.setattr(newest_valid, "all_reduce_min", reduced)
    count = len(answers)
    restored = restore_latest_valid(Folder(5, 10), {}, log=print)
    assert restored.step == 5
    assert [e.reason for e in restored.corrupt] == ["another process could not read it"]
    names = ["checkpoint 10, read", "checkpoint 10, check"][:count]
    names += ["checkpoint 5, read", "checkpoint 5, check"]
    assert published == [(name, 1) for name in names]


@pytest.mark.parametrize("bad", ["read", "check"])
def test_damage_that_this_process_finds_is_reported_to_the_others(monkeypatch, bad):
    folder, published = Folder(5, 10), []

    def fail(step, *_):
        raise folder.corrupt(step, "one bit")

    def reduced(processes, name, number):
        published.append((name, number))
        return number

    monkeypatch.setattr(newest_valid, "all_reduce_min", reduced)
    setattr(folder, bad, fail)
    with pytest.raises(DataError, match="no valid checkpoint"):
        restore_latest_valid(folder, {}, log=print)
    read, check = ("read", 1), ("check", 0)
    parts = [("read", 0)] if bad == "read" else [read, check]
    assert published == [
        (f"checkpoint {step}, {part}", number)
        for step in (10, 5)
        for part, number in parts
    ]


def test_a_run_begins_only_where_none_has_been():
    assert resume(Folder()) == (None, [])
    for trace in ("corrupt-7", "9"):
        with pytest.raises(DataError, match=f"Cannot start a run: .*holds {trace}"):
            resume(Folder(others=[trace]))


def test_a_stray_number_above_the_newest_is_named_and_passed_over():
    step, logged = resume(Folder(5, others=["4", "99", "corrupt-7"]))
    assert step == 5
    assert logged == ["WARNING: Ignoring run/checkpoints/99: not a checkpoint."]


class Lagging:
    """A directory of checkpoints that shows what is in it only after some looks."""

    directory = Path("run/checkpoints")

    def __init__(self, *looks):
        self._looks = list(looks)

    def steps(self):
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]


class Second:
    """The second of two processes; the first sees step 12."""

    index, count, is_first = 1, 2, False

    def receive(self, name):
        return "12"


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(files.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        files.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )


def test_the_last_step_is_the_newest_and_without_any_it_is_none():
    assert agreed_latest_step(Lagging([5, 10])) == 10
    assert agreed_latest_step(Lagging([])) == 0


@pytest.mark.usefixtures("clock")
def test_a_process_waits_until_it_sees_the_step_that_the_first_one_sees():
    assert agreed_latest_step(Lagging([5], [5], [5, 12]), Second()) == 12


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("seen", [[], [5], [5, 12, 20]])
def test_a_process_that_keeps_seeing_another_step_fails(seen):
    with pytest.raises(InputMissingError, match=r"1 sees .* process 0 sees 12"):
        agreed_latest_step(Lagging(seen), Second())
