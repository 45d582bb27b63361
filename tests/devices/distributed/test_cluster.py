"""Processes are detected by flags, SLURM and TPU pods, and wait for one another."""

import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from t2t_jax.devices.distributed import cluster
from t2t_jax.devices.distributed.cluster import (
    ProcessInfo,
    detect_cluster,
    initialize_jax_distributed,
    require_free_port,
    require_single_task,
    split_address,
)
from t2t_jax.errors import UnavailableError, UserError

STEP = {
    "SLURM_JOB_ID": "7919",
    "SLURM_STEP_NODELIST": "node[03,05]",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_NTASKS": "6",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "2",
    "SLURM_STEP_TASKS_PER_NODE": "3(x2)",
}
FIRST, SECOND = (
    ProcessInfo(index=index, count=3, source="--num_processes=3") for index in (0, 1)
)


THREE = {"coordinator_address": "a:1", "num_processes": 3}


@pytest.fixture(autouse=True)
def _no_tpu(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)


def find(environ=None, **flags):
    return detect_cluster(environ=environ or {}, **flags)


def without(name):
    return {key: value for key, value in STEP.items() if key != name}


@pytest.mark.parametrize(
    ("environ", "flags"),
    [
        ({}, {"num_processes": 1, "process_id": 0, "coordinator_address": "a:1"}),
        ({"JOB_COMPLETION_INDEX": "4"}, {}),
        (without("SLURM_STEP_NUM_TASKS"), {}),  # a batch script
        (without("SLURM_JOB_ID"), {}),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "1"}, {}),
    ],
    ids=str,
)
def test_a_process_is_single_unless_there_are_others(environ, flags):
    assert find(environ, **flags) is None


@pytest.mark.parametrize(
    ("environ", "flags", "message"),
    [
        ({}, {"num_processes": 2}, "--process_id are missing"),
        ({}, {**THREE, "process_id": 3}, "--process_id=3 must .* 0 to 2"),
        ({"JOB_COMPLETION_INDEX": "x"}, THREE, "JOB_COMPLETION_INDEX=x must"),
        (without("SLURM_PROCID"), {}, "SLURM_PROCID is not set"),
    ],
    ids=str,
)
def test_settings_that_name_no_one_process_are_refused(environ, flags, message):
    with pytest.raises(UserError, match=message):
        find(environ, **flags)


def test_flags_define_a_process_and_win():
    info, source = find(process_id=2, **THREE), "--num_processes=3"
    assert info == ProcessInfo(index=2, count=3, source=source, address="a:1")
    # Process 0 is not mistaken for no process.
    first = find(STEP, process_id=0, **THREE)
    assert (first.index, first.count, first.detected_by) == (0, 3, "")
    kubernetes = {"JOB_COMPLETION_INDEX": "1"}
    assert find(kubernetes, **THREE).index == 1
    assert find(kubernetes, process_id=2, **THREE).index == 2


@pytest.mark.parametrize(
    ("changed", "devices"),
    [
        ({}, (2,)),
        ({"SLURM_STEP_TASKS_PER_NODE": "1(x6)"}, None),
        ({"SLURM_STEP_TASKS_PER_NODE": "11(x2)"}, (2,)),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, (2,)),
        ({"CUDA_VISIBLE_DEVICES": "0"}, None),
    ],
    ids=str,
)
def test_a_task_of_slurm_takes_a_node_or_its_own_device(changed, devices):
    info = find({**STEP, **changed})
    assert info.devices == devices
    assert (info.index, info.count, info.detected_by) == (5, 6, "slurm")


def test_what_several_tasks_or_a_limit_that_is_none_cannot_do_is_refused():
    require_single_task("average", environ={**STEP, "SLURM_STEP_NUM_TASKS": "1"})
    with pytest.raises(UserError, match="--mode=average runs in one process"):
        require_single_task("average", environ=STEP)
    for text in ("0", "x"):
        with pytest.raises(UserError, match=f"TIMEOUT={text} must be"):
            initialize_jax_distributed(FIRST, environ={cluster.TIMEOUT: text})


@pytest.mark.parametrize(
    ("present", "hosts", "platforms", "found"),
    [
        (True, 4, "tpu,cpu", (3, 4, "faketpu")),
        (True, 1, "tpu", None),
        (False, 4, "tpu", None),
        (True, 4, "cpu", None),
    ],
)
def test_a_host_of_a_tpu_pod_is_detected(monkeypatch, present, hosts, platforms, found):
    from jax._src import clusters

    pod = SimpleNamespace(
        name="faketpu",
        is_env_present=lambda: present,
        get_process_count=lambda: hosts,
        get_process_id=lambda: 3,
    )
    none = SimpleNamespace(is_env_present=lambda: False)
    monkeypatch.setattr(cluster, "find_spec", lambda name: name)
    monkeypatch.setattr(clusters, "GkeTpuCluster", none)
    monkeypatch.setattr(clusters, "GceTpuCluster", pod)
    info = find({"JAX_PLATFORMS": platforms})
    assert (info and (info.index, info.count, info.detected_by)) == found


def test_an_address_has_a_host_and_a_port():
    assert split_address("node-0:1234") == ("node-0", 1234)
    assert split_address("[fe80::7]:65535") == ("fe80::7", 65535)
    for address in ("", "host:", ":1", "host:0", "host:65536", "fe80::7:1", "[]:1"):
        with pytest.raises(ValueError, match="is not host:port"):
            split_address(address)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_port_that_is_taken_is_refused_at_the_bind_address(listener):
    require_free_port(SECOND, listener, environ={})
    with pytest.raises(UnavailableError, match=f"cannot listen at {listener}"):
        require_free_port(FIRST, listener, environ={})
    bound = listener.replace("127.0.0.1", "127.0.0.2")
    require_free_port(FIRST, listener, environ={"JAX_COORDINATOR_BIND_ADDRESS": bound})


def waiting(info, address, *, seconds, body="time.sleep(60)"):
    """Starts a process that waits for the others."""
    program = (
        "import ctypes, signal, time\n"
        "from t2t_jax.devices.distributed.cluster import ProcessInfo\n"
        "from t2t_jax.devices.distributed.cluster import initialization_deadline\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: None)\n"
        "print('ready', flush=True)\n"
        f"with initialization_deadline({info!r}, {address!r}, seconds={seconds}):\n"
        f"    {body}\n"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", program], text=True, **pipes)


@pytest.mark.parametrize(
    ("info", "address", "reason"),
    [
        (FIRST, "127.0.0.1:1", "Not all of processes 1 to 2 have connected"),
        (SECOND, "127.0.0.1:1", "No process listens there (Connection refused)"),
        (SECOND, "no.such.host.invalid:1", "No process listens there ("),
        (SECOND, "LISTENER", "Process 0 or another program listens there"),
    ],
)
def test_after_the_timeout_it_says_what_is_missing(listener, info, address, reason):
    process = waiting(info, address.replace("LISTENER", listener), seconds=0.3)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 69
    assert stderr.startswith(f"[rank {info.index}] error: --num_processes=3 requires 3")
    assert reason in stderr
    assert stderr.count("\n") == 3


def test_a_signal_ends_the_wait_even_in_foreign_code(listener):
    # Python's own handler would run only after it.
    usleep = "ctypes.CDLL(None).usleep(50_000_000)"
    process = waiting(FIRST, listener, seconds=60, body=usleep)
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=240)
    stopped = "[rank 0] error: Stopped by SIGTERM. Rerun the same command.\n"
    assert (process.returncode, stderr) == (75, stopped)
