"""Writes the page of a run while it trains, without ever failing the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from t2t_jax.files import atomic_write
from t2t_jax.report.environment import ENVIRONMENT, describe_environment
from t2t_jax.report.run_page import run_page
from t2t_jax.run.workdir import Workdir

REPORT = "report.html"


def report_path(workdir: Workdir) -> Path:
    """Returns the path of the page in the directory of its run."""
    return workdir.path / REPORT


class ReportWriter:
    """Writes report.html, and before it environment.json, of the run that trains here.

    An error is logged as a warning, once, and training continues.

    Args:
      processes: of the run.
    """

    def __init__(
        self, workdir: Workdir, *, log: Callable[[str], None], processes: int = 1
    ):
        self._workdir, self._log, self._processes = workdir, log, processes
        self._has_environment = self._has_warned = False

    def __call__(self, is_over: bool) -> None:
        """Writes the page.

        Args:
          is_over: whether the training of this process has ended.
        """
        try:
            if not self._has_environment:
                found = describe_environment(processes=self._processes)
                self._workdir.write_json(ENVIRONMENT, found)
                self._has_environment = True
            page = run_page(self._workdir, is_over=is_over)
            atomic_write(report_path(self._workdir), page)
        except Exception as error:  # A page is not worth a run.
            if not self._has_warned:
                self._has_warned = True
                self._log(
                    f"WARNING: {REPORT} cannot be written: {error or repr(error)}. "
                    "Training continues. Write it with --mode=report later."
                )
