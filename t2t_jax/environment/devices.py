"""Checks JAX and its devices, in a process of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import t2t_jax
from t2t_jax.data.files.quantities import format_bytes
from t2t_jax.environment.check import Check
from t2t_jax.environment.software import TESTED

_GROUP = "devices"
_TIMEOUT, _SLOW_START = 60.0, 20.0  # seconds
_PROBE = (sys.executable, "-m", "t2t_jax.environment.jax_probe")
_GPU_FILES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
_TPU_FILES = ("/dev/accel0", "/dev/vfio/0")
_REINSTALL = "Reinstall it: pip install --force-reinstall 'jax=={version}'."


class DeviceProbe:
    """Starts JAX in another process; a context manager, which ends that process.

    Args:
      command: prints the JSON object of `jax_probe.describe_devices`.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = _PROBE,
        environ: Mapping[str, str] = os.environ,
        timeout: float = _TIMEOUT,
    ):
        package = str(Path(t2t_jax.__file__).parents[1])
        paths = [package, *filter(None, [environ.get("PYTHONPATH", "")])]
        self._timeout = timeout
        self._platforms = environ.get("JAX_PLATFORMS", "")
        # Files: a full pipe would block the process before it is read.
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [*command],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env={**environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def __enter__(self) -> DeviceProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._out.close()
        self._err.close()

    def checks(self) -> Iterator[Check]:
        """Waits for the process, and checks what it has printed."""
        try:
            code = self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            yield Check(
                _GROUP,
                "jax",
                "error",
                f"JAX has not started within {self._timeout:.0f} s",
                "Check the driver (nvidia-smi), and that no other program holds the "
                "device. JAX_PLATFORMS=cpu uses the processor alone.",
            )
            return
        found = self._result() if code == 0 else None
        if found is None:
            yield self._failure(code)
            return
        yield from device_checks(found)

    def _result(self) -> dict[str, Any] | None:
        self._out.seek(0)
        lines = self._out.read().decode(errors="replace").splitlines()
        try:
            found = json.loads(lines[-1])
        except (IndexError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _failure(self, code: int) -> Check:
        self._err.seek(0)
        lines = self._err.read().decode(errors="replace").strip().splitlines()
        reason = lines[-1][:300] if lines else f"it ended with code {code}"
        advice = "Check the driver. " + _REINSTALL
        if self._platforms not in ("", "cpu"):
            advice = (
                f"JAX_PLATFORMS={self._platforms} is set. Unset it, or install the "
                "extra and the driver of that platform."
            )
        if "XLA_FLAGS" in reason:
            advice = "Unset XLA_FLAGS, or correct it."
        if code == -signal.SIGILL:
            reason = "it uses instructions that this processor does not have"
            advice = "Use a machine with AVX, or build jaxlib on this one."
        elif code < 0:
            reason = f"it was ended by {signal.Signals(-code).name}"
        elif "ImportError" in reason or "ModuleNotFoundError" in reason:
            advice = "Its installation is incomplete or broken. " + _REINSTALL
        return Check(
            _GROUP,
            "jax",
            "error",
            f"JAX cannot be used: {reason}",
            advice.format(version=TESTED["jax"][0]),
            {"exit_code": code},
        )


def device_checks(found: Mapping[str, Any]) -> Iterator[Check]:
    """Checks the devices that JAX uses.

    Args:
      found: from `jax_probe.describe_devices`.
    """
    yield _check_start(found)
    for device in found["devices"]:
        memory = device["memory_bytes"]
        size = f", {format_bytes(memory)} of memory for JAX" if memory else ""
        yield Check(
            _GROUP,
            f"device {device['id']}",
            "ok",
            f"{device['kind']}{size}",
            details=dict(device),
        )
    yield from _unused_accelerators(found["platform"])
    yield from _model_checks(found)


def _check_start(found: Mapping[str, Any]) -> Check:
    seconds = found["import_seconds"] + found["device_seconds"]
    slow = seconds > _SLOW_START
    return Check(
        _GROUP,
        "jax",
        "warning" if slow else "ok",
        f"JAX {found['jax']} computes on {found['platform']}, ready after "
        f"{seconds:.1f} s",
        "A slow disk or driver delays every start. Install the environment on a "
        "local disk."
        if slow
        else "",
        {"version": found["jax"], "platform": found["platform"], "seconds": seconds},
    )


def _model_checks(found: Mapping[str, Any]) -> Iterator[Check]:
    """Yields the precision and the attention kernel of the default model."""
    yield Check(
        _GROUP,
        "precision",
        "ok",
        f"model.compute_dtype=auto computes in {found['compute_dtype']}; parameters "
        "and sums are float32",
        details={"compute_dtype": found["compute_dtype"]},
    )
    kernel = found["attention"]
    yield Check(
        _GROUP,
        "attention",
        "ok",
        f"the default configuration runs the {kernel} attention kernel",
        "model.attention=auto may be faster in bfloat16."
        if found["platform"] == "gpu" and kernel == "plain"
        else "",
        {"attention": kernel},
    )


def _unused_accelerators(platform: str) -> Iterator[Check]:
    """Yields a warning if there is an accelerator and JAX computes on the CPU."""
    if platform != "cpu":
        return
    for files, name, extra in (
        (_GPU_FILES, "an NVIDIA GPU", "cuda"),
        (_TPU_FILES, "a TPU", "tpu"),
    ):
        if any(os.path.exists(file) for file in files):
            yield Check(
                _GROUP,
                f"unused {extra}",
                "warning",
                f"this machine has {name}, and JAX uses the processor alone",
                f"Run pip install 't2t-jax[{extra}]', and unset JAX_PLATFORMS and "
                "CUDA_VISIBLE_DEVICES if they hide it.",
            )
