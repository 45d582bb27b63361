"""Checks JAX and its devices, in a process of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import t2t_jax
from t2t_jax.quantities import format_bytes

_TIMEOUT = 60.0  # seconds
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
    timeout: float = _TIMEOUT,
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
        found = json.loads(done.stdout.splitlines()[-1])
        yield from _describe(found)
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
    yield Check(
        "devices",
        "jax",
        "ok",
        f"JAX {found['jax']} computes on {found['platform']} in "
        f"{found['compute_dtype']}, with the {found['attention']} attention kernel; "
        f"ready after {seconds:.1f} s",
        details=dict(found),
    )
    for device in found["devices"]:
        memory = device["memory_bytes"]
        size = f", {format_bytes(memory)} of memory for JAX" if memory else ""
        about = f"{device['kind']}{size}"
        yield Check("devices", f"device {device['id']}", "ok", about)
    unused = {extra for file, extra in _ACCELERATORS.items() if os.path.exists(file)}
    for extra in sorted(unused) if found["platform"] == "cpu" else ():
        yield Check(
            "devices",
            f"unused {extra}",
            "warning",
            "this machine has an accelerator, and JAX uses the processor alone",
            f"Run pip install 't2t-jax[{extra}]', and unset JAX_PLATFORMS and "
            "CUDA_VISIBLE_DEVICES if they hide it.",
        )
