import subprocess
import sys
import threading

import pytest

from t2t_jax.distributed import jax_internals
from t2t_jax.distributed.processes import (
    SINGLE_PROCESS,
    Processes,
    current_processes,
    initialize,
)
from t2t_jax.errors import UserError
from tests.distributed.coordinator import Coordinator


@pytest.fixture(autouse=True)
def coordinator(monkeypatch):
    coordinator = Coordinator()
    monkeypatch.setattr(jax_internals, "client", lambda: coordinator)
    monkeypatch.setattr(jax_internals, "_SLICE_MILLISECONDS", 20)
    return coordinator


def process(index, count=2):
    return Processes(index=index, count=count)


def test_a_published_text_is_received():
    process(0).publish("news", "zwei\nZeilen")
    assert process(1).receive("news") == "zwei\nZeilen"


def test_receive_waits_for_publish():
    timer = threading.Timer(0.2, process(0).publish, ["news", "at last"])
    timer.start()
    assert process(1).receive("news") == "at last"


def test_other_failures_of_the_coordinator_are_not_hidden(monkeypatch):
    class Gone:
        def blocking_key_value_get(self, key, milliseconds):
            raise RuntimeError("UNAVAILABLE: the coordinator is gone")

    monkeypatch.setattr(jax_internals, "client", Gone)
    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        process(1).receive("news")


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
