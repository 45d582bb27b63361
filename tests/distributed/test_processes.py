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


def test_one_process_is_the_first_and_bears_no_mark():
    assert SINGLE_PROCESS.is_first
    assert SINGLE_PROCESS.log_prefix == ""
    assert [process(k).is_first for k in (0, 1)] == [True, False]
    assert process(1).log_prefix == "[rank 1] "


def test_what_one_tells_another_hears():
    process(0).publish("news", "zwei\nZeilen")
    assert process(1).receive("news") == "zwei\nZeilen"


def test_to_hear_is_to_wait():
    timer = threading.Timer(0.2, process(0).publish, ["news", "at last"])
    timer.start()
    assert process(1).receive("news") == "at last"


def test_nobody_waits_longer_than_asked_for():
    with pytest.raises(UnavailableError, match=r"waited 0.1 s for 'news'"):
        process(1).receive("news", seconds=0.1)


def test_other_failures_of_the_coordinator_are_not_hidden(monkeypatch):
    class Gone:
        def blocking_key_value_get(self, key, milliseconds):
            raise RuntimeError("UNAVAILABLE: the coordinator is gone")

    monkeypatch.setattr(processes, "_client", Gone)
    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        process(1).receive("news")


def test_one_process_tells_nobody_and_agrees_with_itself(coordinator):
    SINGLE_PROCESS.publish("news", "x")
    assert SINGLE_PROCESS.sync_exit_codes("opened", 65) == 65
    assert coordinator.texts == {}


def test_all_agree_that_all_is_well():
    assert in_each(3, lambda process: process.sync_exit_codes("opened", 0)) == [0, 0, 0]


def test_one_failure_is_everybody_s_code():
    codes = [0, 65, 0]
    told = in_each(
        3, lambda process: process.sync_exit_codes("opened", codes[process.index])
    )
    assert told == [65, 65, 65]


def test_a_failure_is_known_before_everybody_has_come():
    late = process(2, 3)

    def act(process):
        return process.sync_exit_codes("opened", 66 if process.index else 0)

    assert in_each(2, lambda p: act(Processes(index=p.index, count=3))) == [66, 66]
    assert late.sync_exit_codes("opened", 0) == 66


def test_who_has_failed_ends_by_itself_if_the_others_do_not_come(monkeypatch):
    monkeypatch.setattr(processes, "_VERDICT_SECONDS_AFTER_FAILURE", 0.1)
    with pytest.raises(Ended, match="75"):
        process(1).sync_exit_codes("opened", 75)


def test_to_join_nobody_is_to_be_alone():
    assert initialize(environ={"JAX_PLATFORMS": "cpu"}) is SINGLE_PROCESS
    assert current_processes() is SINGLE_PROCESS


def test_a_mistake_in_the_flags_joins_nobody():
    with pytest.raises(UserError, match="belong together"):
        initialize(num_processes=2, environ={})
    assert current_processes() is SINGLE_PROCESS


def test_to_be_alone_needs_no_jax():
    program = (
        "import sys\n"
        "from t2t_jax.distributed.processes import initialize\n"
        "initialize(environ={})\n"
        "sys.exit('jax' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_leaving_alone_is_nothing():
    SINGLE_PROCESS.shutdown(0)
