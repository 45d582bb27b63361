import threading
import time

import pytest

from t2t_jax.cli.processes.shared_model import choose_steps, require_visible
from t2t_jax.cli.processes.stages import RemoteFailure
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.run.workdir import Workdir
from tests.cli.threads import on_all


@pytest.fixture
def run(tmp_path):
    """Holds two checkpoints, which is as much of them as is looked at here."""
    made = Workdir(tmp_path / "run")
    for step in (5, 7):
        (made.checkpoints / str(step)).mkdir(parents=True)
    return made


def hidden(run, step):
    """Makes a workdir that does not show one checkpoint of a run."""
    other = Workdir(run.path.parent / "hidden")
    other.checkpoints.mkdir(parents=True)
    for path in run.checkpoints.iterdir():
        if path.name != str(step):
            (other.checkpoints / path.name).mkdir()
    return other


def test_the_first_process_chooses_for_all_and_is_the_only_one_to_look(run):
    asked = []

    def choose(index):
        asked.append(index)
        return (5, 7)

    found = on_all(lambda ps: choose_steps(ps, run, lambda: choose(ps.index)))
    assert found == [(5, 7)] * 3
    assert asked == [0]


def test_one_process_chooses_for_itself(run):
    assert choose_steps(SINGLE_PROCESS, run, lambda: [9]) == (9,)


def test_where_the_first_cannot_choose_nobody_waits_for_it(run, capsys):
    def fail():
        raise DataError("there is no checkpoint")

    began = time.monotonic()
    found = on_all(lambda ps: choose_steps(ps, run, fail))
    assert [type(error) for error in found] == [RemoteFailure] * 3
    assert [error.code for error in found] == [65] * 3
    assert capsys.readouterr().err == "error: there is no checkpoint\n"
    assert time.monotonic() - began < 10


def test_one_process_that_cannot_choose_says_so(run):
    def fail():
        raise DataError("there is no checkpoint")

    with pytest.raises(DataError, match="there is no checkpoint"):
        choose_steps(SINGLE_PROCESS, run, fail)


def test_a_process_that_does_not_see_the_checkpoint_ends_all(run, capsys):
    seen = [run, hidden(run, 7), run]
    found = on_all(
        lambda ps: choose_steps(ps, seen[ps.index], lambda: [5, 7], seconds=0)
    )
    assert [error.code for error in found] == [66] * 3
    told = capsys.readouterr().err
    assert told.startswith("error: Process 0 uses step 7, but process 1 does not see")
    assert "--workdir must be on a file system that all processes share" in told


def test_a_checkpoint_that_appears_late_is_waited_for(run):
    late = hidden(run, 7)
    timer = threading.Timer(0.3, (late.checkpoints / "7").mkdir)
    timer.start()
    second = Processes(index=1, count=2)
    require_visible(late, [5, 7], processes=second, seconds=20)
    assert (late.checkpoints / "7").is_dir()
    timer.join()


def test_one_that_does_not_appear_is_named(run):
    second = Processes(index=1, count=2)
    with pytest.raises(InputMissingError, match=r"step 9, but process 1 .*run/check"):
        require_visible(run, [5, 9], processes=second, seconds=0.1)
