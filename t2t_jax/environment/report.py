"""Runs all checks of the machine and the installation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import t2t_jax
from t2t_jax.environment import host
from t2t_jax.environment.check import Check, worst
from t2t_jax.environment.devices import check_devices


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
        "versions": host.check_versions,
        "devices": check_devices,
        "machine": host.check_machine,
        "storage": lambda: host.check_storage(workdir, is_given=is_given),
        "variables": host.check_variables,
    }
    checks: list[Check] = []
    for group, check in groups.items():
        try:
            checks += check()
        except Exception as error:  # A fault of a check must not hide the others.
            message = f"this check failed: {type(error).__name__}: {error}"
            checks.append(Check(group, "failed", "warning", message))
    return {
        "t2t_jax": t2t_jax.__version__,
        "status": worst(checks),
        "checks": [check.to_dict() for check in checks],
        "seconds": round(time.perf_counter() - began, 2),
    }
