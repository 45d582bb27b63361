import math
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from t2t_jax.errors import DivergedError
from t2t_jax.parallelism.preemption import PreemptionNotice
from t2t_jax.training import guard
from t2t_jax.training.guard import SharedStopRequest, StopRequest, require_finite

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


def test_a_second_signal_leaves_at_once_with_the_code_of_a_stopped_run():
    program = (
        "import signal\n"
        "from t2t_jax.training.guard import StopRequest\n"
        "with StopRequest():\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print('alive', flush=True)\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    print('still alive', flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ,
    )
    assert done.returncode == 75
    assert done.stdout == "alive\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["loss", "gradient_norm"])
def test_a_number_that_is_none_ends_the_run_and_names_the_step(name, bad):
    figures = {"loss": 2.0, "gradient_norm": 0.5, name: bad}
    with pytest.raises(
        DivergedError, match=r"(?s)by step 17: .*peak_learning_rate"
    ) as info:
        require_finite(17, **figures)
    assert info.value.exit_code == 76
    assert "config.optimizer.peak_learning_rate" in str(info.value)


def test_large_and_zero_figures_are_numbers():
    require_finite(1, loss=1e30, gradient_norm=0.0)


class Peers:
    """The other processes, in the place of JAX's service."""

    def __init__(self):
        self.notices, self.stop_at = 0, None

    @contextmanager
    def open(self):
        yield PreemptionNotice(lambda step: step == self.stop_at, self.be_told)

    def be_told(self):
        self.notices += 1


@pytest.fixture
def peers(monkeypatch):
    peers = Peers()
    monkeypatch.setattr(guard, "preemption_notice", peers.open)
    return peers


def test_several_processes_stop_where_all_agree_to(peers):
    peers.stop_at = 5
    with SharedStopRequest() as stop:
        assert [stop.reached(step) for step in (4, 5)] == [False, True]
    assert peers.notices == 0


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_told_to_the_others_and_stops_nobody_at_once(peers, number):
    before = signal.getsignal(number)
    with SharedStopRequest() as stop:
        signal.raise_signal(number)
        assert stop.requested == number.name
        assert not stop.reached(3)
    assert peers.notices == 1
    assert signal.getsignal(number) is before


def test_a_second_signal_leaves_whatever_the_others_do(peers, monkeypatch):
    left = []
    monkeypatch.setattr(guard.os, "_exit", left.append)
    with SharedStopRequest():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert left == [75]
