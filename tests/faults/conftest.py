"""A run that the tests of files copy, and none of them changes."""

import pytest

from t2t_jax.cli.modes import train
from tests.faults import running


@pytest.fixture(scope="session")
def one_step(tmp_path_factory):
    """A run of one step, which was evaluated and saved."""
    workdir = tmp_path_factory.mktemp("one step") / "run"
    running.finish(
        workdir, steps=1, checkpoint__every_steps=1, evaluation__every_steps=1
    )
    return workdir


@pytest.fixture
def nothing_trained(empty_directory, own_signals, monkeypatch):
    """Lets `main` come to the first step in this process, and end there."""
    monkeypatch.setattr(train, "_train", lambda *_: 0)
