import signal
import socket
import subprocess
import sys
import time

import pytest

from t2t_jax.devices.distributed.cluster_env import ProcessInfo
from t2t_jax.devices.distributed.rendezvous import (
    initialize_jax_distributed,
    require_free_port,
)
from t2t_jax.errors import UnavailableError, UserError

FIRST = ProcessInfo(index=0, count=3, source="--num_processes=3")
SECOND = ProcessInfo(index=1, count=3, source="--num_processes=3")


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    return address


def test_a_port_that_is_taken_is_refused(listener, free):
    require_free_port(FIRST, free, environ={})
    require_free_port(SECOND, listener, environ={})
    with pytest.raises(UnavailableError, match=f"cannot listen at {listener}"):
        require_free_port(FIRST, listener, environ={})


def test_the_port_is_checked_at_the_bind_address(listener):
    port = listener.partition(":")[2]
    elsewhere = {"JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.2:{port}"}
    require_free_port(FIRST, listener, environ=elsewhere)


@pytest.mark.parametrize("seconds", ["0", "x"])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(UserError, match=f"TIMEOUT={seconds} must be"):
        initialize_jax_distributed(
            FIRST, environ={"T2T_JAX_INITIALIZATION_TIMEOUT": seconds}
        )


def waiting(info, address, *, seconds, body="time.sleep(60)"):
    """Starts a process that waits for the others."""
    program = (
        "import ctypes, signal, time\n"
        "from t2t_jax.devices.distributed.cluster_env import ProcessInfo\n"
        "from t2t_jax.devices.distributed.rendezvous import initialization_deadline\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: None)\n"
        "print('ready', flush=True)\n"
        f"with initialization_deadline({info!r}, {address!r}, seconds={seconds}):\n"
        f"    {body}\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_after_the_timeout_a_process_exits_with_69(free):
    process = waiting(FIRST, free, seconds=0.5)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 69
    assert stderr.startswith("[rank 0] error: --num_processes=3 requires 3 processes. ")
    assert (
        f"has waited 0.5 s at {free}:\nNot all of processes 1 to 2 have connected"
        in stderr
    )
    assert stderr.count("\n") == 3


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:1", "No process listens there (Connection refused)"),
        ("no.such.host.invalid:1", "No process listens there ("),
        ("LISTENER", "Process 0 or another program listens there"),
    ],
)
def test_the_message_describes_what_listens_at_the_address(listener, address, reason):
    address = address.replace("LISTENER", listener)
    process = waiting(SECOND, address, seconds=0.1)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 69
    assert reason in stderr


def test_a_signal_ends_the_wait_even_in_foreign_code(free):
    # Python's own handler would run only after it.
    process = waiting(
        FIRST, free, seconds=60, body="ctypes.CDLL(None).usleep(50_000_000)"
    )
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 75
    assert stderr == ("[rank 0] error: Stopped by SIGTERM. Rerun the same command.\n")
