"""Signals are handled in a thread, which writes to stderr.

Seen to fail: with an `os.write` in `write_stderr` that may raise, both.
"""

import os
import signal
import threading

import pytest

from t2t_jax.distributed.signal_watcher import watch_signals, write_stderr


@pytest.fixture
def unheard():
    """A stderr that nobody reads any more, or that lies on a full disk."""
    kept = os.dup(2)

    def replace(by):
        os.dup2(by, 2)
        os.close(by)

    yield replace
    os.dup2(kept, 2)
    os.close(kept)


def gone():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full():
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize("kind", [gone, full])
def test_write_stderr_ignores_a_closed_or_full_stream(unheard, kind):
    unheard(kind())
    write_stderr("Is anybody there?")


@pytest.mark.parametrize("kind", [gone, full])
def test_every_signal_is_seen_with_a_closed_or_full_stream(unheard, kind):
    seen, second = [], threading.Event()

    def on_stop(name):
        write_stderr(name)
        seen.append(name)
        if len(seen) == 2:
            second.set()

    before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
    unheard(kind())
    try:
        with watch_signals(on_stop):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGUSR1)
                second.wait(0.2)
            assert second.wait(120)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == ["SIGUSR1", "SIGUSR1"]
