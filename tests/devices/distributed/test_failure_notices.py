"""Several processes as threads with one dictionary as coordinator.

Here `hard_exit` ends a thread and records the exit code.
"""

import sys
import threading

import pytest

from t2t_jax.devices.distributed import failure_notices
from t2t_jax.devices.distributed.failure_notices import FailureMonitor

# That is how a thread ends here.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)


class Coordinator:
    """The client of a coordinator that the threads of a test share."""

    def __init__(self):
        self.texts = {}

    def key_value_set(self, key, text, allow_overwrite=False):
        self.texts[key] = text

    def key_value_dir_get(self, folder):
        return [(k, v) for k, v in sorted(self.texts.items()) if k.startswith(folder)]


@pytest.fixture
def ended(monkeypatch):
    codes = []

    def end(code):
        codes.append(code)
        sys.exit()  # Of this thread, which ends without a word.

    monkeypatch.setattr(failure_notices, "hard_exit", end)
    return codes


def test_those_that_did_not_fail_clear_up_before_the_exit_even_if_that_fails(ended):
    called, client = [], Coordinator()

    def fail():
        called.append(threading.current_thread().name)
        raise PermissionError("read-only file system")

    processes = [
        FailureMonitor(client, rank=rank, count=2, before_exit=fail) for rank in (0, 1)
    ]
    for process in processes:
        process._period = 0.02
        process.start()
    failing = threading.Thread(target=processes[1].abort_all, args=(65, "A rule."))
    failing.start()
    for thread in (failing, processes[0]._thread):
        thread.join(120)
    for process in processes:
        process.close()
    assert (len(called), ended) == (1, [65, 65])
