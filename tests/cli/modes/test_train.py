"""How several processes begin a run together, with threads for processes.

Seen to fail: without the wait of process 0 for the others, before training (which has
deadlines) and at the end of a complete run (whose failure notices nobody would read).
"""

import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from t2t_jax.cli.modes import train
from t2t_jax.config import Config
from tests.cli.threads import on_all


class Handshake(SimpleNamespace):
    """Accepts every process."""

    def require_same_config(self, config, *, index):
        pass

    require_same_workdir = require_same_text = require_same_config


@pytest.fixture
def events(monkeypatch):
    return []


@pytest.fixture
def run(monkeypatch, tmp_path, events):
    def start(*, is_complete):
        text = None if is_complete else SimpleNamespace(fingerprints={})
        console = SimpleNamespace(log=lambda line: None)
        handshake = Handshake(fingerprints=text and text.fingerprints)

        def receive(processes):
            processes.receive("text")
            time.sleep(0.3)
            events.append("the other process is there")
            return handshake

        @contextmanager
        def open_run(config, **how):
            yield SimpleNamespace(owner="", text=text)

        def train_one(options, text, console):
            events.append(f"process {options.processes.index} trains")
            return 0

        monkeypatch.setattr(train, "open_run", open_run)
        monkeypatch.setattr(train, "make_console", lambda config, **how: console)
        monkeypatch.setattr(train, "require_trainable", lambda workdir: None)
        monkeypatch.setattr(train.RunHandshake, "receive", receive)
        monkeypatch.setattr(train, "open_prepared_data", lambda *a, **how: text)
        monkeypatch.setattr(train, "_train", train_one)
        monkeypatch.setattr(train, "_next_commands", lambda workdir: "")
        workdir = SimpleNamespace(
            log_path=lambda index: tmp_path / "log", path=tmp_path
        )

        def one(processes):
            code = train.run(
                SimpleNamespace(
                    config=Config(), workdir=workdir, overrides={}, processes=processes
                )
            )
            events.append(f"process {processes.index} ends")
            return code

        assert on_all(one, count=2) == [0, 0]

    return start


def test_training_begins_when_every_process_has_opened_the_run(run, events):
    run(is_complete=False)
    assert events[0] == "the other process is there"
    assert sorted(events[1:]) == [
        *("process 0 ends", "process 0 trains"),
        *("process 1 ends", "process 1 trains"),
    ]


def test_a_complete_run_ends_when_every_process_has_compared_it(run, events):
    run(is_complete=True)
    assert events[0] == "the other process is there"
    assert sorted(events[1:]) == ["process 0 ends", "process 1 ends"]
