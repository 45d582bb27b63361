import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from t2t_jax.distributed import processes
from t2t_jax.distributed.processes import (
    SINGLE_PROCESS,
    Processes,
    current_processes,
    initialize,
)
from t2t_jax.errors import UnavailableError, UserError
from tests.distributed.coordinator import Coordinator


class Ended(Exception):
    """What would have ended the process."""


def end_now(code):
    raise Ended(code)


@pytest.fixture(autouse=True)
def coordinator(monkeypatch):
    coordinator = Coordinator()
    monkeypatch.setattr(processes, "_client", lambda: coordinator)
    monkeypatch.setattr(processes, "_SLICE_SECONDS", 0.02)
    monkeypatch.setattr(processes, "hard_exit", end_now)
    return coordinator


def process(index, count=2):
    return Processes(index=index, count=count)


def in_each(count, act):
    """Lets so many processes do something at the same time."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda k: act(process(k, count)), range(count)))


def test_a_single_process_is_the_first_and_has_no_prefix():
    assert SINGLE_PROCESS.is_first
    assert SINGLE_PROCESS.log_prefix == ""
    assert [process(k).is_first for k in (0, 1)] == [True, False]
    assert process(1).log_prefix == "[rank 1] "


def test_a_published_text_is_received():
    process(0).publish("news", "zwei\nZeilen")
    assert process(1).receive("news") == "zwei\nZeilen"


def test_receive_waits_for_publish():
    timer = threading.Timer(0.2, process(0).publish, ["news", "at last"])
    timer.start()
    assert process(1).receive("news") == "at last"


def test_receive_has_a_timeout():
    with pytest.raises(UnavailableError, match=r"waited 0.1 s for 'news'"):
        process(1).receive("news", seconds=0.1)


def test_other_failures_of_the_coordinator_are_not_hidden(monkeypatch):
    class Gone:
        def blocking_key_value_get(self, key, milliseconds):
            raise RuntimeError("UNAVAILABLE: the coordinator is gone")

    monkeypatch.setattr(processes, "_client", Gone)
    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        process(1).receive("news")


def test_a_single_process_publishes_nothing(coordinator):
    SINGLE_PROCESS.publish("news", "x")
    assert SINGLE_PROCESS.sync_exit_codes("opened", 65) == 65
    assert coordinator.texts == {}


def test_without_failures_all_codes_are_zero():
    assert in_each(3, lambda process: process.sync_exit_codes("opened", 0)) == [0, 0, 0]


def test_the_code_of_one_failure_is_that_of_all():
    codes = [0, 65, 0]
    published = in_each(
        3, lambda process: process.sync_exit_codes("opened", codes[process.index])
    )
    assert published == [65, 65, 65]


def test_a_failure_is_known_before_all_processes_have_reported():
    late = process(2, 3)

    def act(process):
        return process.sync_exit_codes("opened", 66 if process.index else 0)

    assert in_each(2, lambda p: act(Processes(index=p.index, count=3))) == [66, 66]
    assert late.sync_exit_codes("opened", 0) == 66


def test_a_failed_process_ends_if_the_others_do_not_report(monkeypatch):
    monkeypatch.setattr(processes, "_VERDICT_SECONDS_AFTER_FAILURE", 0.1)
    with pytest.raises(Ended, match="75"):
        process(1).sync_exit_codes("opened", 75)


def test_without_settings_initialize_returns_a_single_process():
    assert initialize(environ={"JAX_PLATFORMS": "cpu"}) is SINGLE_PROCESS
    assert current_processes() is SINGLE_PROCESS


def test_with_invalid_flags_nothing_is_initialized():
    with pytest.raises(UserError, match="belong together"):
        initialize(num_processes=2, environ={})
    assert current_processes() is SINGLE_PROCESS


def test_a_single_process_does_not_import_jax():
    program = (
        "import sys\n"
        "from t2t_jax.distributed.processes import initialize\n"
        "initialize(environ={})\n"
        "sys.exit('jax' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_shutdown_of_a_single_process_does_nothing():
    SINGLE_PROCESS.shutdown(0)
