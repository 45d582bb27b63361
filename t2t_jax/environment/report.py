"""Runs all checks of the machine and the installation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import t2t_jax
from t2t_jax.environment.check import Check, worst
from t2t_jax.environment.devices import DeviceProbe
from t2t_jax.environment.machine import check_machine
from t2t_jax.environment.software import check_software
from t2t_jax.environment.storage import check_storage
from t2t_jax.environment.variables import check_variables

GROUPS = ("versions", "devices", "machine", "storage", "variables", "extras")
"""The groups of a report, in order."""


def check_environment(workdir: Path, *, is_given: bool) -> dict[str, Any]:
    """Checks versions, devices, machine, disks, variables and extras.

    Args:
      workdir: whose disk is checked; it need not exist.
      is_given: whether the user chose it.

    Returns:
      A JSON object: `status` (the worst), `checks` in the order of `GROUPS`, `t2t_jax`
      (its version) and `seconds`.
    """
    began = time.perf_counter()
    checks: list[Check] = []
    # JAX starts while the other checks run.
    try:
        with DeviceProbe() as probe:
            checks += _guarded("versions", check_software)
            checks += _guarded("machine", check_machine)
            checks += _guarded(
                "storage", lambda: check_storage(workdir, is_given=is_given)
            )
            checks += _guarded("variables", check_variables)
            checks += _guarded("devices", probe.checks)
    except OSError as error:
        message = f"JAX was not started: {error}"
        checks.append(Check("devices", "jax", "error", message))
    checks.sort(key=lambda check: GROUPS.index(check.group))
    return {
        "t2t_jax": t2t_jax.__version__,
        "status": worst(checks),
        "checks": [check.to_dict() for check in checks],
        "seconds": round(time.perf_counter() - began, 2),
    }


def _guarded(group: str, check: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """Yields checks; one that raises is itself reported."""
    try:
        yield from check()
    except Exception as error:
        message = f"this check failed: {type(error).__name__}: {error}"
        yield Check(group, "internal", "warning", message, "Report this.")
