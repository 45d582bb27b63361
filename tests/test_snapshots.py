from pathlib import Path

import pytest

from t2t_jax import snapshots
from t2t_jax.errors import InputMissingError
from t2t_jax.snapshots import Snapshots


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

    def hear(self, name):
        return "12"


@pytest.fixture
def newest(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(snapshots.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        snapshots.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )

    def newest(*looks, **processes):
        run = Snapshots.__new__(Snapshots)
        run._checkpoints = Lagging(*looks)
        return run.newest(**processes)

    return newest


def test_the_last_step_is_the_newest_and_without_any_it_is_none(newest):
    assert newest([5, 10]) == 10
    assert newest([]) == 0


def test_a_process_waits_until_it_sees_the_step_that_the_first_one_sees(newest):
    assert newest([5], [5], [5, 12], processes=Second()) == 12


@pytest.mark.parametrize("seen", [[], [5], [5, 12, 20]])
def test_one_that_goes_on_seeing_another_is_refused(newest, seen):
    with pytest.raises(InputMissingError, match=r"1 sees .* process 0 sees 12"):
        newest(seen, processes=Second())
