"""What the tests of files have in common."""

import shutil

import pytest

from t2t_jax.cli.modes import train
from tests.integration import tiny


@pytest.fixture
def nothing_trained(empty_directory, own_signals, monkeypatch):
    """Lets `main` come to the first step in this process, and end there."""
    monkeypatch.setattr(train, "_train", lambda *_: 0)


@pytest.fixture
def copy(one_step, tmp_path):
    """A run of one step that a test may change."""
    return shutil.copytree(one_step, tmp_path / "run")


@pytest.fixture(scope="session")
def another_vocabulary(tmp_path_factory):
    """One of the same size, learnt from other text than that of `one_step`."""
    workdir = tmp_path_factory.mktemp("another") / "run"
    changed = {"data__train": "phrasebook:train:200"}
    tiny.succeed("--mode=prepare", *tiny.arguments(workdir, **changed))
    return workdir / "vocab.model"
