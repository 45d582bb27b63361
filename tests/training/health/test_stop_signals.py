import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from t2t_jax.distributed.preemption import PreemptionSync
from t2t_jax.training.health import stop_signals
from t2t_jax.training.health.stop_signals import (
    SharedStopRequest,
    StopRequest,
    exit_on_signals,
)

# Locks a mutex twice, which nothing interrupts.
FOREIGN = (
    "    mutex, c = ctypes.create_string_buffer(256), ctypes.CDLL(None)\n"
    "    c.pthread_mutex_lock(mutex), c.pthread_mutex_lock(mutex)\n"
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_a_wish_that_names_it(number, capfd):
    with StopRequest() as stop:
        assert stop.requested == ""
        signal.raise_signal(number)
        assert stop.requested == number.name
    assert "saving a checkpoint" in capfd.readouterr().err


def test_the_handlers_of_before_are_back_afterwards():
    before = [signal.getsignal(number) for number in SIGNALS]

    def fail():
        with StopRequest():
            assert [signal.getsignal(number) for number in SIGNALS] != before
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert [signal.getsignal(number) for number in SIGNALS] == before


class Peers:
    """The other processes, in the place of JAX's service."""

    def __init__(self):
        self.notices, self.stop_at = 0, None

    @contextmanager
    def open(self):
        yield PreemptionSync(lambda step: step == self.stop_at, self.be_told)

    def be_told(self):
        self.notices += 1


@pytest.fixture
def peers(monkeypatch):
    peers = Peers()
    monkeypatch.setattr(stop_signals, "preemption_sync", peers.open)
    return peers


def test_several_processes_stop_where_all_agree_to(peers):
    peers.stop_at = 5
    with SharedStopRequest() as stop:
        assert [stop.should_stop(step) for step in (4, 5)] == [False, True]
    assert peers.notices == 0


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_told_to_the_others_and_stops_nobody_at_once(peers, number):
    before = signal.getsignal(number)
    with SharedStopRequest() as stop:
        signal.raise_signal(number)
        assert stop.requested == number.name
        assert not stop.should_stop(3)
    assert peers.notices == 1
    assert signal.getsignal(number) is before


def test_a_second_signal_leaves_whatever_the_others_do(peers, monkeypatch):
    left = []
    monkeypatch.setattr(stop_signals.os, "_exit", left.append)
    with SharedStopRequest():
        signal.raise_signal(signal.SIGTERM)
        assert left == []
        signal.raise_signal(signal.SIGTERM)
    # By the handler, and by the thread that sees what no handler can.
    assert left == [75, 75]


def test_a_second_signal_leaves_even_while_a_compiler_works():
    program = (
        "import ctypes, signal\n"
        "from t2t_jax.training.health.stop_signals import StopRequest\n"
        "with StopRequest():\n"
        "    print('ready', flush=True)\n" + FOREIGN
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 75
    assert b"SIGTERM: saving a checkpoint" in said


def test_where_nothing_is_unsaved_the_first_signal_leaves_at_once():
    program = (
        "import ctypes\n"
        "from t2t_jax.training.health.stop_signals import exit_on_signals\n"
        "with exit_on_signals(advice='Say it twice.'):\n"
        "    print('ready', flush=True)\n" + FOREIGN
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGUSR1)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 75
    assert said == b"error: Stopped by SIGUSR1. Say it twice.\n"


def test_no_signal_falls_between_the_handlers_and_the_thread(monkeypatch):
    """While the handler is one that does nothing, the thread must watch."""
    heard, deaf = [], []
    before = signal.getsignal(signal.SIGTERM)
    change = signal.signal

    def changed(number, handler):
        earlier = change(number, handler)
        if number == signal.SIGTERM and not watched:
            deaf.append(handler)
        return earlier

    watched = []

    @contextmanager
    def watching(on_stop):
        watched.append(on_stop)
        yield
        watched.pop()
        heard.append(signal.getsignal(signal.SIGTERM))

    monkeypatch.setattr(stop_signals, "watch_signals", watching)
    monkeypatch.setattr(stop_signals.signal, "signal", changed)
    with exit_on_signals():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert deaf == []
    assert heard == [before]


def test_who_is_stuck_shows_the_stacks_of_its_threads_and_ends_with_70():
    program = (
        "import time\n"
        "from t2t_jax.training.health.watchdog import Watchdog\n"
        "from t2t_jax.training.health.stop_signals import abort_stuck_run\n"
        "def work_that_never_ends():\n"
        "    time.sleep(50)\n"
        "with Watchdog(step=1, pause=50, on_timeout=abort_stuck_run) as deadlines:\n"
        "    deadlines.step_done(4), deadlines.step_done(5), deadlines.step_done(6)\n"
        "    work_that_never_ends()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == 70
    assert "FATAL This run is stuck: waiting for step 7, for 1 s." in done.stderr
    assert "in work_that_never_ends" in done.stderr
