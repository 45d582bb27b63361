"""Whether this process is one of several: what flags and environment promise.

Flags win; without them SLURM is asked, and then a TPU pod. Nothing is sent over a
network here but on the virtual machine of a Cloud TPU, whose metadata server knows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from t2t_jax.errors import UserError

_TOGETHER = ("coordinator_address", "num_processes", "process_id")
_INDEX = "JOB_COMPLETION_INDEX"
# What `srun` gives each task of a step. A batch script has some of them too, but not
# the number of tasks of its step.
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
    """Where a process stands among those that were promised.

    Attributes:
      index: which it is, from 0.
      count: how many there are.
      promise: who says so, for people: `--num_processes=2`.
      address: host:port of process 0; "" where JAX finds it.
      found_by: the name of JAX's detection that finds it; "" where it is given.
      devices: the local devices that this process is to use; None means all.
    """

    index: int
    count: int
    promise: str
    address: str = ""
    found_by: str = ""
    devices: tuple[int, ...] | None = None


def detect_cluster(
    *,
    coordinator_address: str = "",
    num_processes: int = 0,
    process_id: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ProcessInfo | None:
    """Finds out which process this is, and of how many.

    Args:
      coordinator_address: host:port of process 0; "" where it was not given.
      num_processes: how many there are; 0 where it was not given.
      process_id: which this is; None where it was not given.
      environ: the environment: that of SLURM, a TPU, or an indexed Kubernetes job.

    Returns:
      The place; None for a process that is alone.

    Raises:
      UserError: the flags or the variables are incomplete, or contradict one another.

    Example:
      >>> place = detect_cluster(
      ...     coordinator_address="host:1234", num_processes=2, process_id=1, environ={}
      ... )
      >>> (place.index, place.count, place.promise)
      (1, 2, '--num_processes=2')
    """
    if coordinator_address or num_processes or process_id is not None:
        return _of_flags(coordinator_address, num_processes, process_id, environ)
    return from_slurm(environ) or _of_tpu_pod(environ)


def split_address(address: str) -> tuple[str, int]:
    """Takes `host:port` apart.

    Raises:
      ValueError: it is none.

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
    """Finds the place of a task of `srun`; None outside, and for a task by itself.

    Raises:
      UserError: SLURM promises several tasks and does not say enough about them.
    """
    count = environ.get(_SLURM_COUNT, "")
    if "SLURM_JOB_ID" not in environ or not count.isdecimal() or int(count) < 2:
        return None
    missing = [name for name in _SLURM if name not in environ]
    if missing:
        raise UserError(
            f"{_SLURM_COUNT}={count} promises {count} processes, and "
            f"{', '.join(missing)} is not set. Start them with srun and let it pass "
            "its variables on, or give --coordinator_address, --num_processes and "
            "--process_id."
        )
    return ProcessInfo(
        index=int(environ["SLURM_PROCID"]),
        count=int(count),
        promise=f"{_SLURM_COUNT}={count}",
        found_by="slurm",
        devices=_slurm_devices(environ),
    )


def require_single_task(mode: str, *, environ: Mapping[str, str] = os.environ) -> None:
    """Refuses several tasks of SLURM where one process does all the work.

    Raises:
      UserError: there are several, and all would write the same files.
    """
    if (place := from_slurm(environ)) is not None:
        raise UserError(
            f"--mode={mode} is done by one process, and {place.promise} promises "
            f"{place.count}. Start it with srun --ntasks=1."
        )


def _slurm_devices(environ: Mapping[str, str]) -> tuple[int, ...] | None:
    """Chooses a task's GPUs; by itself JAX takes one, even where a task has a node."""
    tasks = re.findall(
        r"(\d+)(?:\(x\d+\))?", environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    )
    if tasks and all(int(number) == 1 for number in tasks):
        return None
    # Where SLURM has bound each task to a device of its own, that one is number 0.
    bound = [environ[name] for name in _VISIBLE if name in environ]
    if any(names and "," not in names for names in bound):
        return None
    return (int(environ["SLURM_LOCALID"]),)


def _of_flags(
    address: str, count: int, index: int | None, environ: Mapping[str, str]
) -> ProcessInfo | None:
    if count == 1 and not index:
        return None
    name = f"--process_id={index}"
    if index is None and environ.get(_INDEX):
        name = f"{_INDEX}={environ[_INDEX]}"
        index = int(environ[_INDEX]) if environ[_INDEX].isdecimal() else -1
    given = dict(zip(_TOGETHER, (address, count, index is not None), strict=True))
    missing = [flag for flag in _TOGETHER if not given[flag]]
    if missing:
        raise UserError(
            f"--{', --'.join(_TOGETHER)} belong together, and "
            f"--{', --'.join(missing)} {'are' if missing[1:] else 'is'} missing. Give "
            f"all three (an indexed Kubernetes job gives --process_id as {_INDEX}), or "
            "none where SLURM or a TPU pod starts the processes."
        )
    if index is None or not 0 <= index < count:
        raise UserError(
            f"{name} must be a whole number from 0 to {count - 1} with "
            f"--num_processes={count}. Number the processes from 0, each once."
        )
    return ProcessInfo(
        index=index, count=count, promise=f"--num_processes={count}", address=address
    )


def _of_tpu_pod(environ: Mapping[str, str]) -> ProcessInfo | None:
    platforms = environ.get("JAX_PLATFORMS", "tpu")
    if "tpu" not in platforms or find_spec("libtpu") is None:
        return None
    # JAX's own detection, which is not public. Importing JAX counts the TPU chips, and
    # where there are none no metadata server is asked.
    import jax  # noqa: F401
    from jax._src import clusters

    for kind in (clusters.GkeTpuCluster, clusters.GceTpuCluster):
        if kind.is_env_present():
            count = kind.get_process_count()
            if count < 2:
                return None
            return ProcessInfo(
                index=kind.get_process_id(),
                count=count,
                promise=f"this TPU pod of {count} hosts",
                found_by=kind.name,
            )
    return None
