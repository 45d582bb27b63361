"""A run that the tests of files copy, and none of them changes."""

import pytest

from tests.faults import running


@pytest.fixture(scope="session")
def one_step(tmp_path_factory):
    """A run of one step, which was evaluated and saved."""
    workdir = tmp_path_factory.mktemp("one step") / "run"
    running.finish(
        workdir, steps=1, checkpoint__every_steps=1, evaluation__every_steps=1
    )
    return workdir
