"""Detects the processes of a run from flags, SLURM or a TPU pod, and connects them.

Coordinators and TPU pods are detected by JAX. Not so the tasks of SLURM: JAX takes a
batch script for one of them, ignores missing variables, and gives each task one GPU.
Only on the virtual machine of a Cloud TPU is the network used, for its metadata server.

After its own timeout JAX ends the process from C++, without an exception; if the
coordinator's port is in use it crashes. Both cases are handled here first, so the
address is detected (by JAX) before `jax.distributed.initialize`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

from t2t_jax import jax_internals
from t2t_jax.devices.distributed.signals import hard_exit, watch_signals, write_stderr
from t2t_jax.errors import StoppedError, UnavailableError, UserError

TIMEOUT = "T2T_JAX_INITIALIZATION_TIMEOUT"
"""The environment variable with the timeout for the other processes, in seconds."""

HEARTBEAT_SECONDS = 30
"""Without a heartbeat for so long a process counts as failed, and all others end."""

SHUTDOWN_SECONDS = 30
"""Timeout of the shutdown, which waits for the other processes."""

_INITIALIZATION_SECONDS = 300
_BIND_ADDRESS = "JAX_COORDINATOR_BIND_ADDRESS"
_PROBE_SECONDS = 3
_REQUIRED_FLAGS = ("coordinator_address", "num_processes", "process_id")
_INDEX = "JOB_COMPLETION_INDEX"
# Set by `srun` for each task of a step. A batch script has some of them too, but not
# the number of tasks.
_SLURM_COUNT = "SLURM_STEP_NUM_TASKS"
_SLURM = ("SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@dataclass(frozen=True, kw_only=True)
class ProcessInfo:
    """The rank of a process, and how to connect it to the others.

    Attributes:
      index: the rank, from 0.
      count: the number of processes.
      source: the setting of that number, for messages: `--num_processes=2`.
      address: host:port of process 0; "" if JAX detects it.
      detected_by: the name of JAX's detection to use; "" with an address.
      devices: the local devices of this process; None means all.
    """

    index: int
    count: int
    source: str
    address: str = ""
    detected_by: str = ""
    devices: tuple[int, ...] | None = None


def detect_cluster(
    *,
    coordinator_address: str = "",
    num_processes: int = 0,
    process_id: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ProcessInfo | None:
    """Detects the rank of this process and the number of processes.

    Args:
      coordinator_address: host:port of process 0; "" if not given.
      num_processes: 0 if not given.
      process_id: rank of this process; None if not given.
      environ: the environment: of SLURM, a TPU pod, or an indexed Kubernetes job.

    Returns:
      None for a single process.

    Raises:
      UserError: the flags or the variables are incomplete or contradictory.

    Example:
      >>> info = detect_cluster(
      ...     coordinator_address="host:1234", num_processes=2, process_id=1, environ={}
      ... )
      >>> (info.index, info.count, info.source)
      (1, 2, '--num_processes=2')
    """
    if not (coordinator_address or num_processes or process_id is not None):
        return from_slurm(environ) or _from_tpu_pod(environ)
    if num_processes == 1 and not process_id:
        return None
    index, name = process_id, f"--process_id={process_id}"
    if index is None and (text := environ.get(_INDEX)):
        name, index = f"{_INDEX}={text}", int(text) if text.isdecimal() else -1
    given = (coordinator_address, num_processes, index is not None)
    pairs = zip(_REQUIRED_FLAGS, given, strict=True)
    missing = [flag for flag, is_given in pairs if not is_given]
    if index is None or missing:
        raise UserError(
            f"--{', --'.join(_REQUIRED_FLAGS)} belong together, and "
            f"--{', --'.join(missing)} {'are' if missing[1:] else 'is'} missing. Pass "
            f"all three (an indexed Kubernetes job sets --process_id as {_INDEX}), or "
            "none if SLURM or a TPU pod starts the processes."
        )
    if not 0 <= index < num_processes:
        rule = f"{name} must be an integer from 0 to {num_processes - 1}"
        change = "Number the processes from 0, each once."
        raise UserError(f"{rule} with --num_processes={num_processes}. {change}")
    source, at = f"--num_processes={num_processes}", coordinator_address
    return ProcessInfo(index=index, count=num_processes, source=source, address=at)


def split_address(address: str) -> tuple[str, int]:
    """Splits `host:port`.

    Raises:
      ValueError: the address has another form.

    Example:
      >>> split_address("[::1]:1234")
      ('::1', 1234)
    """
    host, _, port = address.rpartition(":")
    bare = host[1:-1] if host[:1] + host[-1:] == "[]" else host
    is_port = port.isascii() and port.isdecimal() and 0 < int(port) < 2**16
    if not bare or not is_port or (":" in bare and bare == host):
        raise ValueError(f"{address!r} is not host:port.")
    return bare, int(port)


def from_slurm(environ: Mapping[str, str] = os.environ) -> ProcessInfo | None:
    """Detects a task of `srun`; None outside of SLURM, and for a single task.

    Raises:
      UserError: variables of SLURM are missing.
    """
    count = environ.get(_SLURM_COUNT, "")
    if "SLURM_JOB_ID" not in environ or not count.isdecimal() or int(count) < 2:
        return None
    if missing := [name for name in _SLURM if name not in environ]:
        raise UserError(
            f"{_SLURM_COUNT}={count} requires {count} processes, but "
            f"{', '.join(missing)} is not set. Start them with srun and let it export "
            f"its variables, or pass --{', --'.join(_REQUIRED_FLAGS)}."
        )
    return ProcessInfo(
        index=int(environ["SLURM_PROCID"]),
        count=int(count),
        source=f"{_SLURM_COUNT}={count}",
        detected_by="slurm",
        devices=_slurm_devices(environ),
    )


def require_single_task(mode: str, *, environ: Mapping[str, str] = os.environ) -> None:
    """Checks that SLURM does not start several tasks for a mode of one process.

    Raises:
      UserError: there are several, which would write the same files.
    """
    if (info := from_slurm(environ)) is not None:
        fault = f"{info.source} requires {info.count}. Start it with srun --ntasks=1."
        raise UserError(f"--mode={mode} runs in one process, but {fault}")


def _slurm_devices(environ: Mapping[str, str]) -> tuple[int, ...] | None:
    """Selects a task's GPUs; JAX would take one, even if the task has a node."""
    tasks = environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    if re.fullmatch(r"1(\(x\d+\))?(,1(\(x\d+\))?)*", tasks):
        return None
    # If SLURM has bound each task to its own device, that is device 0.
    bound = [environ[name] for name in _VISIBLE if name in environ]
    if any(names and "," not in names for names in bound):
        return None
    return (int(environ["SLURM_LOCALID"]),)


def _from_tpu_pod(environ: Mapping[str, str]) -> ProcessInfo | None:
    if "tpu" not in environ.get("JAX_PLATFORMS", "tpu") or find_spec("libtpu") is None:
        return None
    rank, hosts, kind = jax_internals.detect_tpu_pod() or (0, 1, "")
    if hosts < 2:
        return None
    source = f"this TPU pod of {hosts} hosts"
    return ProcessInfo(index=rank, count=hosts, source=source, detected_by=kind)


def initialize_jax_distributed(info: ProcessInfo, *, environ: Mapping[str, str]) -> str:
    """Starts or finds the coordinator, and waits until all processes are connected.

    Args:
      environ: the environment; may hold `TIMEOUT`.

    Returns:
      The coordinator's address, host:port.

    Raises:
      UserError: `TIMEOUT` is not a number of seconds.
      UnavailableError: the coordinator cannot be started or found. If other processes
        are missing, a message is printed and this process exits with the same code, 69.
    """
    seconds = _initialization_seconds(environ)
    import jax

    # Until `preemption.preemption_sync` a signal ends this process.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        given, devices = environ.get("JAX_COORDINATOR_ADDRESS"), info.devices or ()
        address = info.address or jax_internals.detect_coordinator(
            given, info.count, info.index, devices, info.detected_by, seconds
        )
        require_free_port(info, address, environ=environ)
        with initialization_deadline(info, address, seconds=seconds):
            jax.distributed.initialize(
                address,
                info.count,
                info.index,
                local_device_ids=info.devices,
                cluster_detection_method="deactivate",
                # Our own timeout, whose message says more, expires first.
                initialization_timeout=seconds + 60,
                heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
                shutdown_timeout_seconds=SHUTDOWN_SECONDS,
            )
    except (RuntimeError, OSError) as error:
        raise UnavailableError(
            f"{info.source} requires {info.count} processes, and process "
            f"{info.index} cannot connect to them: {str(error).splitlines()[0]}"
        ) from error
    return address


def require_free_port(
    info: ProcessInfo, address: str, *, environ: Mapping[str, str]
) -> None:
    """Checks on process 0 that the coordinator's port is free.

    Args:
      address: host:port of the coordinator.
      environ: the environment; may hold another address to listen at.

    Raises:
      UnavailableError: the port is in use. JAX would crash, or share it with another
        coordinator.
    """
    if info.index:
        return
    given, (_, port) = environ.get(_BIND_ADDRESS), split_address(address)
    host, port = split_address(given) if given else ("::", port)
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    is_v6 = found[0] == socket.AF_INET6
    try:  # The port of a coordinator that has just ended can be used again.
        socket.create_server(found[4], family=found[0], dualstack_ipv6=is_v6).close()
    except OSError as error:
        cause = os.strerror(error.errno or 0)
        fault = f"Process 0 of {info.count} cannot listen at {address}: {cause}"
        why = "Another run or a second process 0 may use it. Choose another port."
        raise UnavailableError(f"{fault}. {why}") from error


@contextmanager
def initialization_deadline(
    info: ProcessInfo, address: str, *, seconds: float
) -> Iterator[None]:
    """Ends the process on a signal (exit code 75) or after a timeout (69).

    JAX waits for the other processes in C++, where neither Python's signal handlers nor
    exceptions take effect. Use it in the main thread.
    """

    def end(message: str, code: int) -> None:
        write_stderr(f"[rank {info.index}] error: {message}")
        hard_exit(code)

    def on_stop(name: str) -> None:
        end(f"Stopped by {name}. Rerun the same command.", StoppedError.exit_code)

    def on_expiry() -> None:
        end(_timeout_message(info, address, seconds), UnavailableError.exit_code)

    with watch_signals(on_stop, seconds=seconds, on_expiry=on_expiry):
        yield


def _timeout_message(info: ProcessInfo, address: str, seconds: float) -> str:
    """Describes which processes are missing, and what to check."""
    reason = f"Not all of processes 1 to {info.count - 1} have connected."
    if info.index:
        reason = "Process 0 or another program listens there: others are missing."
        try:
            socket.create_connection(split_address(address), _PROBE_SECONDS).close()
        except OSError as error:  # A host without that name or an answer, too.
            reason = f"No process listens there ({error.strerror or 'no answer'}). "
            reason += "Check process 0, on that host."
    return (
        f"{info.source} requires {info.count} processes. Process {info.index} has "
        f"waited {seconds:g} s at {address}:\n{reason} Check the output of the others, "
        "and whether they can reach this host and port.\nStart all of them, each with "
        "its own number, or a single one without these settings."
    )


def _initialization_seconds(environ: Mapping[str, str]) -> int:
    value = environ.get(TIMEOUT) or str(_INITIALIZATION_SECONDS)
    if not re.fullmatch("0*[1-9][0-9]*", value):
        rule = f"{TIMEOUT}={value} must be a positive integer, in seconds"
        raise UserError(
            f"{rule}. Change it, or unset it for {_INITIALIZATION_SECONDS}."
        )
    return int(value)
