import threading

import pytest

from t2t_jax.cli.processes.shared_model import shared_steps
from t2t_jax.distributed.processes import SINGLE_PROCESS
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

    found = on_all(lambda ps: shared_steps(ps, run, lambda: choose(ps.index)))
    assert found == [(5, 7)] * 3
    assert asked == [0]


def test_one_process_chooses_for_itself(run):
    assert shared_steps(SINGLE_PROCESS, run, lambda: [9]) == (9,)


def test_a_failure_to_choose_is_raised(run):
    def fail():
        raise DataError("checkpoints is empty")

    with pytest.raises(DataError, match="checkpoints is empty"):
        shared_steps(SINGLE_PROCESS, run, fail)


def test_a_process_that_does_not_see_the_checkpoint_names_it(run):
    seen = [run, hidden(run, 7), run]
    found = on_all(
        lambda ps: shared_steps(ps, seen[ps.index], lambda: [5, 7], seconds=0)
    )
    assert [found[0], found[2]] == [(5, 7), (5, 7)]
    assert isinstance(found[1], InputMissingError)
    message = str(found[1])
    assert message.startswith("Process 0 uses step 7, but process 1 does not see")
    assert "--workdir must be on a file system that all processes share" in message


def test_a_checkpoint_that_appears_late_is_waited_for(run):
    late = hidden(run, 7)
    seen = [run, late]
    timer = threading.Timer(0.3, (late.checkpoints / "7").mkdir)
    timer.start()
    found = on_all(
        lambda ps: shared_steps(ps, seen[ps.index], lambda: [5, 7], seconds=20), count=2
    )
    assert found == [(5, 7)] * 2
    timer.join()
