"""What the tests of files have in common."""

import pytest

from t2t_jax.cli.modes import train


@pytest.fixture
def nothing_trained(empty_directory, own_signals, monkeypatch):
    """Lets `main` come to the first step in this process, and end there."""
    monkeypatch.setattr(train, "_train", lambda *_: 0)
