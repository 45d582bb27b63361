import threading

import pytest

from t2t_jax.cli.processes.shared_model import shared_steps
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS
from t2t_jax.errors import InputMissingError
from t2t_jax.run.workdir import Workdir
from tests.cli.threads import on_all


@pytest.fixture
def run(tmp_path):
    """Makes a workdir that shows these checkpoints, which are empty."""

    def make(name, *steps):
        made = Workdir(tmp_path / name)
        for step in steps:
            (made.checkpoints / str(step)).mkdir(parents=True)
        return made

    return make


def test_process_0_chooses_for_all_and_is_the_only_one_to_look(run):
    asked, seen = [], run("run", 5, 7)

    def choose(index):
        asked.append(index)
        return (5, 7)

    found = on_all(lambda ps: shared_steps(ps, seen, lambda: choose(ps.index)))
    assert found == [(5, 7)] * 3
    assert asked == [0]
    assert shared_steps(SINGLE_PROCESS, seen, lambda: [9]) == (9,)


def test_a_process_that_does_not_see_the_checkpoint_names_it(run):
    whole = run("run", 5, 7)
    seen = [whole, run("hidden", 5), whole]
    found = on_all(
        lambda ps: shared_steps(ps, seen[ps.index], lambda: [5, 7], seconds=0)
    )
    assert [found[0], found[2]] == [(5, 7), (5, 7)]
    assert isinstance(found[1], InputMissingError)
    message = str(found[1])
    assert message.startswith("Process 0 uses step 7, but process 1 does not see")


def test_a_checkpoint_that_appears_late_is_waited_for(run):
    seen = [run("run", 5, 7), run("late", 5)]
    timer = threading.Timer(0.3, (seen[1].checkpoints / "7").mkdir)
    timer.start()
    found = on_all(
        lambda ps: shared_steps(ps, seen[ps.index], lambda: [5, 7], seconds=20), count=2
    )
    assert found == [(5, 7)] * 2
    timer.join()
