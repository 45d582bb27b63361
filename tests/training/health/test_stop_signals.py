import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from t2t_jax.devices.distributed.preemption import PreemptionSync
from t2t_jax.training.health import stop_signals
from t2t_jax.training.health.stop_signals import (
    SharedStopRequest,
    StopRequest,
    exit_on_signals,
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


def handlers():
    return [signal.getsignal(number) for number in SIGNALS]


def test_the_handlers_of_before_are_back_afterwards():
    before = handlers()
    with StopRequest():
        assert handlers() != before
    with pytest.raises(RuntimeError, match="in the middle"), StopRequest():
        raise RuntimeError("in the middle")
    assert handlers() == before


def test_a_second_signal_leaves_whatever_the_others_do(monkeypatch):
    notices, left = [], []

    @contextmanager
    def peers():
        yield PreemptionSync(lambda step: step == 5, lambda: notices.append("stop"))

    monkeypatch.setattr(stop_signals, "preemption_sync", peers)
    monkeypatch.setattr(stop_signals.os, "_exit", left.append)
    with SharedStopRequest() as stop:
        assert [stop.should_stop(step) for step in (4, 5)] == [False, True]
        signal.raise_signal(signal.SIGTERM)
        assert (stop.requested, notices, left) == ("SIGTERM", ["stop"], [])
        assert not stop.should_stop(3)
        signal.raise_signal(signal.SIGTERM)
    # By the handler, and by the thread that sees what no handler can.
    assert left == [75, 75]


@pytest.mark.parametrize(
    ("context", "numbers", "said"),
    [
        (
            "StopRequest()",
            [signal.SIGTERM] * 2,
            b"\nSIGTERM: saving a checkpoint, then stopping (again to exit at once)\n",
        ),
        (
            "exit_on_signals(advice='Say it twice.')",
            [signal.SIGUSR1],
            b"error: Stopped by SIGUSR1. Say it twice.\n",
        ),
    ],
    ids=["the second", "the first, where nothing is unsaved"],
)
def test_a_signal_leaves_even_while_a_compiler_works(context, numbers, said):
    # Locks a mutex twice, which nothing interrupts.
    program = (
        "import ctypes\n"
        "from t2t_jax.training.health.stop_signals import *\n"
        f"with {context}:\n"
        "    print('ready', flush=True)\n"
        "    mutex, c = ctypes.create_string_buffer(256), ctypes.CDLL(None)\n"
        "    c.pthread_mutex_lock(mutex), c.pthread_mutex_lock(mutex)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    for number in numbers:
        time.sleep(0.5)
        process.send_signal(number)
    _, found = process.communicate(timeout=30)
    assert (process.returncode, found) == (75, said)


def test_no_signal_falls_between_the_handlers_and_the_thread(monkeypatch):
    """While the handler is one that does nothing, the thread must watch."""
    watched, heard, deaf = [], [], []
    before, change = signal.getsignal(signal.SIGTERM), signal.signal

    def changed(number, handler):
        if number == signal.SIGTERM and not watched:
            deaf.append(handler)
        return change(number, handler)

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
    assert (deaf, heard) == ([], [before])


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
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 70
    assert "FATAL This run is stuck: waiting for step 7, for 1 s." in done.stderr
    assert "in work_that_never_ends" in done.stderr
