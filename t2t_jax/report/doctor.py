"""Checks what a bug report needs: versions, machine, disks, variables, devices.

JAX and its devices are checked in a process of their own.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

from packaging.requirements import Requirement

import t2t_jax
from t2t_jax.devices.processor import lacks_vnni
from t2t_jax.errors import UserError
from t2t_jax.files import cache_home, locked
from t2t_jax.quantities import format_bytes, usable_processors
from t2t_jax.version import __version__

_PROBE = (sys.executable, "-m", "t2t_jax.model.device_probe")
_ACCELERATORS = {"/dev/nvidia0": "cuda", "/dev/accel0": "tpu", "/dev/vfio/0": "tpu"}


Status: TypeAlias = Literal["ok", "warning", "error"]


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
      group: of the report, such as "devices".
      name: unique within the group, and stable.
      status: an error prevents training or translation; a warning makes it slower, or
        less reliable.
      message: what was found.
      advice: what to do about it; "" for nothing.
      details: the same as JSON values.
    """

    group: str
    name: str
    status: Status
    message: str
    advice: str = ""
    details: dict[str, Any] = field(default_factory=dict)


def check_devices(
    *,
    command: Sequence[str] = _PROBE,
    environ: Mapping[str, str] = os.environ,
    timeout: float = 60.0,
) -> Iterator[Check]:
    """Starts JAX in another process, which may fail or hang, and checks its devices.

    Args:
      command: prints the JSON object of `model.device_probe.describe_devices`.
    """
    paths = [str(Path(t2t_jax.__file__).parents[1]), environ.get("PYTHONPATH", "")]
    try:
        done = subprocess.run(
            [*command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            timeout=timeout,
            check=False,
        )
        yield from _describe(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        yield _failure(f"JAX has not started within {timeout:.0f} s", environ)
    except OSError as error:
        yield _failure(f"JAX was not started: {error}", environ)
    except (IndexError, ValueError, KeyError, TypeError):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1][:300] if lines else f"it ended with code {done.returncode}"
        if done.returncode == -signal.SIGILL:
            reason = "it uses instructions that this processor does not have"
        elif done.returncode < 0:
            reason = f"it was ended by {signal.Signals(-done.returncode).name}"
        yield _failure(f"JAX cannot be used: {reason}", environ)


def _failure(message: str, environ: Mapping[str, str]) -> Check:
    advice = "Check the driver (nvidia-smi), or reinstall: pip install -U jax."
    for name in ("JAX_PLATFORMS", "XLA_FLAGS"):
        if value := environ.get(name):
            advice = f"Unset or correct {name}={value}. {advice}"
    return Check("devices", "jax", "error", message, advice)


def _describe(found: Mapping[str, Any]) -> Iterator[Check]:
    seconds = found["import_seconds"] + found["device_seconds"]
    about = (
        "JAX {jax} computes on {platform} in {compute_dtype}, with the {attention} "
        "attention kernel; ready after {seconds:.1f} s".format(**found, seconds=seconds)
    )
    yield Check("devices", "jax", "ok", about, details=dict(found))
    for device in found["devices"]:
        memory = device["memory_bytes"]
        size = f", {format_bytes(memory)} of memory for JAX" if memory else ""
        about = f"{device['kind']}{size}"
        yield Check("devices", f"device {device['id']}", "ok", about)
    unused = {extra for file, extra in _ACCELERATORS.items() if os.path.exists(file)}
    for extra in sorted(unused) if found["platform"] == "cpu" else ():
        about = "this machine has an accelerator, and JAX uses the processor alone"
        advice = (
            f"Run pip install 't2t-jax[{extra}]', and unset JAX_PLATFORMS and "
            "CUDA_VISIBLE_DEVICES if they hide it."
        )
        yield Check("devices", f"unused {extra}", "warning", about, advice)


_SEVERITY: tuple[Status, ...] = ("ok", "warning", "error")
_WARNING: Mapping[bool, Status] = {False: "ok", True: "warning"}
_EXTRAS = ("exchange", "export", "paper", "plots", "serve")
_LITTLE_SPACE, _LEAST_SPACE = 2 << 30, 200 << 20  # bytes
_MOST_LOAD = 1.5  # of each processor
_LEAST_MEMORY = 2 << 30  # bytes; the embedded experiment peaks at about half of it
_VARIABLES = re.compile(
    "JAX_.*|XLA_.*|T2T_JAX_.*|TFDS_.*|LIBTPU_.*|CUDA_VISIBLE_DEVICES|HF_HOME|TMPDIR|"
    "LD_PRELOAD|LD_LIBRARY_PATH|OMP_NUM_THREADS|PYTHON(PATH|UTF8)|XDG_CACHE_HOME"
)
_HARMFUL = re.compile(
    "(JAX_DISABLE_JIT|JAX_DEBUG_NANS|JAX_DEBUG_INFS|JAX_ENABLE_X64)=(?i:1|true)|"
    "JAX_ENABLE_COMPILATION_CACHE=(?i:0|false)|JAX_DEFAULT_MATMUL_PRECISION=b.*|"
    "XLA_FLAGS=.*(device_count|thread_eigen=false|optimization_level=0).*|"
    "CUDA_VISIBLE_DEVICES=(-1)?|T2T_JAX_FAULT=.+"
)


def check_environment(workdir: Path, *, is_given: bool) -> dict[str, Any]:
    """Checks versions, devices, machine, disks and environment variables.

    Args:
      workdir: whose disk is checked; it need not exist.
      is_given: whether the user chose it.

    Returns:
      A JSON object: `status` (the worst), `checks`, `t2t_jax` (its version) and
      `seconds`.
    """
    began = time.perf_counter()
    groups: dict[str, Callable[[], Iterable[Check]]] = {
        "versions": check_versions,
        "devices": check_devices,
        "machine": check_machine,
        "storage": lambda: check_storage(workdir, is_given=is_given),
        "variables": check_variables,
    }
    checks: list[Check] = []
    for group, check in groups.items():
        try:
            checks += check()
        except Exception as error:  # A fault of a check must not hide the others.
            message = f"this check failed: {type(error).__name__}: {error}"
            checks.append(Check(group, "failed", "warning", message))
    statuses = [check.status for check in checks]
    return {
        "t2t_jax": __version__,
        "status": max(statuses, key=_SEVERITY.index, default="ok"),
        "checks": [asdict(check) for check in checks],
        "seconds": round(time.perf_counter() - began, 2),
    }


def check_versions() -> Iterator[Check]:
    """Checks Python and the required packages, and names optional ones."""
    group = "versions"
    yield Check(group, "python", "ok", f"Python {platform.python_version()}")
    required: list[str] = []
    try:
        required = metadata.requires("t2t-jax") or []
    except metadata.PackageNotFoundError:
        advice = "Run pip install -e . in the clone."
        yield Check(group, "t2t-jax", "warning", "t2t-jax is not installed", advice)
    found: dict[str, str] = {}
    lacking: list[str] = []
    for one in map(Requirement, required):
        version = _version(one.name)
        if (marker := one.marker) is None:
            fits = one.specifier.contains
            is_old = not version or not fits(version, prereleases=True)
            about = f"{one.name} {version or 'is not installed'}"
            advice = f"Run pip install --upgrade '{one}'." if is_old else ""
            least = str(one.specifier).removeprefix(">=")
            details = {"version": version or None, "least": least}
            status: Status = "error" if is_old else "ok"
            yield Check(group, one.name.lower(), status, about, advice, details)
        elif extras := [name for name in _EXTRAS if marker.evaluate({"extra": name})]:
            if version:
                found[one.name] = version
            else:
                lacking.append(f"{one.name} ({', '.join(extras)})")
    words = ", ".join(f"{name} {version}" for name, version in found.items())
    run = "Run pip install 't2t-jax[NAME]' for an extra that you need; missing: "
    advice = f"{run}{', '.join(lacking)}." if lacking else ""
    yield Check(group, "optional", "ok", f"optional: {words or 'none'}", advice, found)


def _version(name: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name) or ""
    return ""


def check_machine() -> Iterator[Check]:
    """Checks processors, their load and memory."""
    total, usable, load = os.cpu_count() or 1, usable_processors(), os.getloadavg()[0]
    about = f"{usable} of {total} processors can be used, {platform.platform()}"
    about += ", without VNNI" * lacks_vnni()
    yield Check("machine", "processors", "ok", about, "", {"usable": usable})
    is_busy = load > _MOST_LOAD * total
    about = f"{load:.1f} on {total} processors"
    advice = "Wait for other programs: estimates of time are for idle processors."
    yield Check("machine", "load", _WARNING[is_busy], about, advice * is_busy)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no limit
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")
        memory = min(memory, int(limit))
    is_little = memory < _LEAST_MEMORY
    advice = "Training may run out of memory. Use a smaller model." * is_little
    about, details = format_bytes(memory), {"bytes": memory}
    yield Check("machine", "memory", _WARNING[is_little], about, advice, details)


def check_storage(workdir: Path, *, is_given: bool) -> Iterator[Check]:
    """Checks space and locks on the disks of a workdir, the caches and /tmp.

    Args:
      workdir: need not exist.
      is_given: whether the user chose it; otherwise that it cannot be written to is
        only a warning.
    """
    yield _check_disk("workdir", workdir, denied="error" if is_given else "warning")
    try:
        yield _check_disk("caches", cache_home())
    except UserError as error:
        yield Check("storage", "caches", "error", str(error), "Set XDG_CACHE_HOME.")
    yield _check_disk("temporary files", Path(tempfile.gettempdir()))


def _check_disk(name: str, path: Path, *, denied: Status = "error") -> Check:
    folder = path.absolute()
    while not folder.exists():
        folder = folder.parent
    try:
        usage = shutil.disk_usage(folder)
        with tempfile.TemporaryDirectory(dir=folder) as own, locked(Path(own) / "lock"):
            pass
    except OSError as error:
        reason = f"{folder} cannot be written to or locked: {error.strerror}"
        return Check("storage", name, denied, reason, "Choose another directory.")
    status: Status = "ok"
    if usage.free < _LITTLE_SPACE:
        status = "error" if usage.free < _LEAST_SPACE else "warning"
    advice = "A checkpoint takes 12 bytes a parameter. Free disk space."
    about = f"{path}: {format_bytes(usage.free)} free of {format_bytes(usage.total)}"
    details = {"path": str(path), "free": usage.free, "total": usage.total}
    return Check("storage", name, status, about, advice * (status != "ok"), details)


def check_variables(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Yields a check of each variable that changes what the program does."""
    for name, value in sorted(environ.items()):
        if _VARIABLES.fullmatch(name):
            bad = bool(_HARMFUL.fullmatch(f"{name}={value.strip()}"))
            advice = f"Unset {name}: it makes the program slow or wrong." * bad
            shown = f"{name}={value[:200]!r}"
            yield Check("variables", name, _WARNING[bad], shown, advice)
