"""Writes the page of a run while it trains, without ever failing the run."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_jax.evaluation.protocol import installed_versions
from t2t_jax.files import atomic_write
from t2t_jax.quantities import usable_processors
from t2t_jax.report.run_page import run_page
from t2t_jax.run.workdir import Workdir
from t2t_jax.version import __version__

REPORT, ENVIRONMENT = "report.html", "environment.json"

_PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy"),
    *("sentencepiece", "sacrebleu"),
)

MAX_SHARE = 0.01
"""Of the time that pages may take, but for the last one, which is always written."""


def report_path(workdir: Workdir) -> Path:
    """Returns the path of the page in the directory of its run."""
    return workdir.path / REPORT


class ReportWriter:
    """Writes report.html, and before it environment.json, of the run that trains here.

    An error is logged as a warning, once, and training continues. A page of many
    records takes seconds: evaluations that come too soon after it are left to the next.

    Args:
      processes: of the run.
      clock: seconds.
    """

    def __init__(
        self,
        workdir: Workdir,
        *,
        log: Callable[[str], None],
        processes: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._workdir, self._log, self._processes = workdir, log, processes
        self._clock = clock
        self._has_environment = self._has_warned = False
        self._not_before = clock()

    def __call__(self, is_over: bool) -> None:
        """Writes the page.

        Args:
          is_over: whether the training of this process has ended.
        """
        start = self._clock()
        if start < self._not_before and not is_over:
            return
        try:
            self._write_environment()
            start = self._clock()
            page = run_page(self._workdir, is_over=is_over)
            atomic_write(report_path(self._workdir), page)
        except Exception as error:  # A page is not worth a run.
            if not self._has_warned:
                self._has_warned = True
                self._log(
                    f"WARNING: {REPORT} cannot be written: {error or repr(error)}. "
                    "Training continues. Write it with --mode=report later."
                )
        end = self._clock()
        self._not_before = end + (end - start) / MAX_SHARE

    def _write_environment(self) -> None:
        if not self._has_environment:
            found = describe_environment(processes=self._processes)
            self._workdir.write_json(ENVIRONMENT, found)
            self._has_environment = True


def describe_environment(*, processes: int = 1) -> dict[str, Any]:
    """Describes this machine, its devices, and the packages that matter.

    Imports JAX, and initializes its devices.

    Args:
      processes: of the run.
    """
    import jax

    devices = jax.devices()
    return {
        "t2t_jax": __version__,
        "python": platform.python_version(),
        "packages": installed_versions(_PACKAGES),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": usable_processors(),
        "devices": f"{len(devices)} x {devices[0].device_kind}",
        "platform": devices[0].platform,
        "processes": processes,
    }


def _processor() -> str:
    """Returns the name of the CPU, as far as the system has one."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
