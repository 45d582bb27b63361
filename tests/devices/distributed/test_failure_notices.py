"""Several processes as threads with one dictionary as coordinator.

Here `hard_exit` ends a thread and records the exit code.
"""

import sys
import threading

import pytest

from t2t_jax.devices.distributed import failure_notices
from t2t_jax.devices.distributed.failure_notices import FailureMonitor
from tests.waiting import wait_for

# That is how a thread ends here.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)


class Coordinator:
    """The client of a coordinator that the threads of a test share."""

    def __init__(self):
        self.texts, self.is_gone = {}, False

    def key_value_set(self, key, text, allow_overwrite=False):
        if self.is_gone or (key in self.texts and not allow_overwrite):
            raise RuntimeError(f"ALREADY_EXISTS: {key}")
        self.texts[key] = text

    def key_value_dir_get(self, folder):
        if self.is_gone:
            raise RuntimeError("UNAVAILABLE")
        return [(k, v) for k, v in sorted(self.texts.items()) if k.startswith(folder)]


@pytest.fixture
def ended(monkeypatch):
    codes = []

    def end(code):
        codes.append(code)
        sys.exit()  # Of this thread, which ends without a word.

    monkeypatch.setattr(failure_notices, "hard_exit", end)
    return codes


@pytest.fixture
def processes(monkeypatch):
    started = []

    def start(count, before_exit=lambda: None):
        client = Coordinator()
        for rank in range(count):
            monitor = FailureMonitor(
                client, rank=rank, count=count, before_exit=before_exit
            )
            monitor._period = 0.02
            monitor.start()
            started.append(monitor)
        return client, started

    yield start
    for process in started:
        process.close()


def test_the_others_clear_up_before_the_exit_even_if_that_fails(processes, ended):
    called = []

    def fail():
        called.append(threading.current_thread().name)
        raise PermissionError("read-only file system")

    _, (_, second) = processes(2, before_exit=fail)
    failing = threading.Thread(target=second.abort_all, args=(65, "A rule."))
    failing.start()
    wait_for(lambda: len(ended) == 2)
    failing.join()
    assert (len(called), ended) == (1, [65, 65])


def test_a_process_that_cannot_reach_process_0_ends(processes, ended, capfd):
    client, (first, second) = processes(2)
    first.close()
    client.is_gone = True
    wait_for(lambda: ended)
    assert ended == [69]
    assert second.unresponsive_ranks() == [0]
    assert capfd.readouterr().err == "[rank 1] error: process 0 cannot be reached.\n"
