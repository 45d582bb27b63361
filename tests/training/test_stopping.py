import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from t2t_jax.training import stopping
from t2t_jax.training.stopping import Watchdog


@pytest.mark.parametrize(
    ("context", "numbers", "said"),
    [
        ("StopRequest()", [signal.SIGTERM] * 2, b"\nSIGTERM: saving a checkpoint"),
        # Nothing is unsaved.
        ("exit_on_signals(advice='?')", [signal.SIGUSR1], b"error: Stopped by SIGUSR1"),
    ],
)
def test_a_signal_leaves_even_while_a_compiler_works(context, numbers, said):
    # Locks a mutex twice, which nothing interrupts.
    program = (
        "import ctypes\n"
        "from t2t_jax.training.stopping import *\n"
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
    assert (process.returncode, found.startswith(said)) == (75, True), found
    assert b"Traceback" not in found


@pytest.fixture
def armed(monkeypatch):
    """Notes how faulthandler is armed, which would end the tests."""
    seconds, handler = [], stopping.faulthandler
    monkeypatch.setattr(
        handler, "dump_traceback_later", lambda s, exit: seconds.append(s)
    )
    cancelled = partial(seconds.append, None)
    monkeypatch.setattr(handler, "cancel_dump_traceback_later", cancelled)
    return seconds


def settle(watched):
    for step in range(1, 4):
        watched.step_done(step)


def test_a_step_in_time_is_no_cause_and_one_too_late_is(armed):
    told = []
    with Watchdog(step=1.5, pause=60, on_timeout=told.append) as watched:
        settle(watched)
        for step in range(4, 7):
            time.sleep(0.7)
            watched.step_done(step)
        assert told == []
        time.sleep(2.5)
    assert told == ["waiting for step 7, for 1.5 s"]


def test_a_pause_can_be_too_long_but_not_one_that_goes_on_little_by_little(armed):
    told = []
    with Watchdog(step=60, pause=1.2, on_timeout=told.append) as watched:
        watched.step_done(8)
        with watched.extended("evaluating"):
            for _ in range(4):
                time.sleep(0.6)
                watched.reset()
            assert told == []
        with watched.extended("saving step 8"):
            time.sleep(2.5)
    assert told == ["saving step 8, for 1.2 s"]


def test_0_waits_for_ever(armed):
    told = []
    with Watchdog(step=0, pause=0, on_timeout=told.append) as watched:
        watched.step_done(1)
        time.sleep(1.2)
    assert told == []
    assert set(armed) == {None}


def test_foreign_code_that_never_ends_is_ended_a_minute_later(armed):
    with Watchdog(step=100, pause=1000, on_timeout=print) as watched:
        settle(watched)
        watched.step_done(4)
        # Not left as it was: that would end a pause that may take longer.
        with watched.extended("evaluating"):
            pass
    assert armed == [1060, 160, 1060, None]
