import subprocess
import sys
import threading

import pytest

from t2t_jax import jax_internals
from t2t_jax.devices.distributed.processes import (
    SINGLE_PROCESS,
    Processes,
    current_processes,
    initialize,
)
from t2t_jax.errors import UserError
from tests.devices.distributed.coordinator import Coordinator

FIRST, SECOND = (Processes(index=index, count=2) for index in range(2))


@pytest.fixture(autouse=True)
def coordinator(monkeypatch):
    coordinator = Coordinator()
    monkeypatch.setattr(jax_internals, "client", lambda: coordinator)
    monkeypatch.setattr(jax_internals, "_SLICE_MILLISECONDS", 20)
    return coordinator


def test_receive_waits_for_publish():
    timer = threading.Timer(0.2, FIRST.publish, ["news", "zwei\nZeilen"])
    timer.start()
    assert SECOND.receive("news") == "zwei\nZeilen"


def test_other_failures_of_the_coordinator_are_not_hidden(coordinator):
    coordinator.is_gone = True
    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        SECOND.receive("news")


def test_without_settings_initialize_returns_a_single_process():
    assert initialize(environ={"JAX_PLATFORMS": "cpu"}) is SINGLE_PROCESS
    with pytest.raises(UserError, match="belong together"):
        initialize(num_processes=2, environ={})
    assert current_processes() is SINGLE_PROCESS


def test_a_single_process_does_not_import_jax():
    program = (
        "import sys\n"
        "from t2t_jax.devices.distributed.processes import initialize\n"
        "initialize(environ={})\n"
        "sys.exit('jax' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
