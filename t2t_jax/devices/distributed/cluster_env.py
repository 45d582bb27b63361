"""Detects the processes of a run from flags, SLURM or a TPU pod, in this order.

Coordinators and TPU pods are detected by JAX. Not so the tasks of SLURM: JAX takes a
batch script for one of them, ignores missing variables, and gives each task one GPU.

Only on the virtual machine of a Cloud TPU is the network used, for its metadata server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from t2t_jax import jax_internals
from t2t_jax.errors import UserError

_REQUIRED_FLAGS = ("coordinator_address", "num_processes", "process_id")
_INDEX = "JOB_COMPLETION_INDEX"
# Set by `srun` for each task of a step. A batch script has some of them too, but not
# the number of tasks.
_SLURM_COUNT = "SLURM_STEP_NUM_TASKS"
_SLURM = (
    "SLURM_JOB_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_LOCALID",
)
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
    if coordinator_address or num_processes or process_id is not None:
        return _from_flags(coordinator_address, num_processes, process_id, environ)
    return from_slurm(environ) or _from_tpu_pod(environ)


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
    missing = [name for name in _SLURM if name not in environ]
    if missing:
        raise UserError(
            f"{_SLURM_COUNT}={count} requires {count} processes, but "
            f"{', '.join(missing)} is not set. Start them with srun and let it export "
            "its variables, or pass --coordinator_address, --num_processes and "
            "--process_id."
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
        raise UserError(
            f"--mode={mode} runs in one process, but {info.source} requires "
            f"{info.count}. Start it with srun --ntasks=1."
        )


def _slurm_devices(environ: Mapping[str, str]) -> tuple[int, ...] | None:
    """Selects a task's GPUs; JAX would take one, even if the task has a node."""
    tasks = re.findall(
        r"(\d+)(?:\(x\d+\))?", environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    )
    if tasks and all(int(number) == 1 for number in tasks):
        return None
    # If SLURM has bound each task to its own device, that is device 0.
    bound = [environ[name] for name in _VISIBLE if name in environ]
    if any(names and "," not in names for names in bound):
        return None
    return (int(environ["SLURM_LOCALID"]),)


def _from_flags(
    address: str, count: int, index: int | None, environ: Mapping[str, str]
) -> ProcessInfo | None:
    if count == 1 and not index:
        return None
    name = f"--process_id={index}"
    if index is None and environ.get(_INDEX):
        name = f"{_INDEX}={environ[_INDEX]}"
        index = int(environ[_INDEX]) if environ[_INDEX].isdecimal() else -1
    given = dict(zip(_REQUIRED_FLAGS, (address, count, index is not None), strict=True))
    missing = [flag for flag in _REQUIRED_FLAGS if not given[flag]]
    if missing:
        raise UserError(
            f"--{', --'.join(_REQUIRED_FLAGS)} belong together, and "
            f"--{', --'.join(missing)} {'are' if missing[1:] else 'is'} missing. Pass "
            f"all three (an indexed Kubernetes job sets --process_id as {_INDEX}), or "
            "none if SLURM or a TPU pod starts the processes."
        )
    if index is None or not 0 <= index < count:
        raise UserError(
            f"{name} must be an integer from 0 to {count - 1} with "
            f"--num_processes={count}. Number the processes from 0, each once."
        )
    return ProcessInfo(
        index=index, count=count, source=f"--num_processes={count}", address=address
    )


def _from_tpu_pod(environ: Mapping[str, str]) -> ProcessInfo | None:
    platforms = environ.get("JAX_PLATFORMS", "tpu")
    if "tpu" not in platforms or find_spec("libtpu") is None:
        return None
    pod = jax_internals.detect_tpu_pod()
    if pod is None or pod.hosts < 2:
        return None
    return ProcessInfo(
        index=pod.rank,
        count=pod.hosts,
        source=f"this TPU pod of {pod.hosts} hosts",
        detected_by=pod.kind,
    )
