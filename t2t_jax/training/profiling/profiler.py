"""Traces some steps of a run with JAX's profiler, and logs a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import jax

from t2t_jax.devices.distributed.processes import barrier, current_processes
from t2t_jax.training.profiling.trace_summary import categorize_all, summarize_trace


class Profiler:
    """Traces a range of steps; its failures do not end the run.

    Args:
      steps: their numbers; empty for none.
      folder: directory of the trace, created when needed.
    """

    def __init__(self, steps: range, *, folder: Path, log: Callable[[str], None]):
        self._steps, self._folder, self._log = steps, folder, log
        self._first = self._newest = 0
        self._is_open = self._is_tracing = False
        self._programs: Callable[[], Iterable[str]] = tuple

    def starts_at(self, step: int) -> bool:
        """Returns whether to call `start` before a step; the same on all processes."""
        return step in self._steps and not self._first

    def ends_at(self, step: int) -> bool:
        """Returns whether to call `stop` after a step; the same on all processes."""
        return self._is_open and step >= self._steps[-1]

    def start(self, step: int) -> None:
        """Starts the trace.

        Args:
          step: the first one in it; the devices must have finished those before it.
        """
        self._first, self._is_open = step, True
        with self._log_errors():
            options = jax.profiler.ProfileOptions()
            # Tracing Python calls slows the host down.
            options.python_tracer_level = 0
            jax.profiler.start_trace(
                self._folder, create_perfetto_trace=True, profiler_options=options
            )
            self._is_tracing = True

    def annotate(self, step: int) -> AbstractContextManager[object]:
        """Returns a context in which to dispatch a step, so that the trace names it."""
        if not self._is_tracing:
            return nullcontext()
        self._newest = step
        return jax.profiler.StepTraceAnnotation("train", step_num=step)

    def stop(self) -> None:
        """Writes the trace of steps that are finished; logs its path and summary."""
        self._write()
        # Collectives time out, in Gloo after 30 s, so all processes continue together.
        barrier(current_processes(), f"profiled from {self._first}")

    @contextmanager
    def stop_on_exit(
        self, made: int, *, programs: Callable[[], Iterable[str]] = tuple
    ) -> Iterator[None]:
        """Writes the trace on exit, if the run ends before its last step.

        Args:
          made: steps done before this process.
          programs: returns the HLO texts of the compiled steps.
        """
        self._programs = programs
        if self._steps and self._steps[-1] <= made:
            self._log(
                f"{self._setting}: nothing is traced, since this run is at step "
                f"{made:,} already."
            )
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            # After a failure other processes must be notified first.
            if self._is_open and not (has_failed and current_processes().count > 1):
                self._write()

    @property
    def _setting(self) -> str:
        return f"profile.steps={self._steps[0]}:{self._steps[-1]}"

    def _write(self) -> None:
        self._is_open = False
        if not self._is_tracing:
            return
        self._is_tracing = False
        with self._log_errors():
            jax.profiler.stop_trace()
            files = self._folder.glob("plugins/profile/*/*.xplane.pb")
            file = max(files, key=lambda path: path.stat().st_mtime)
            self._log(
                f"Traced steps {self._first:,} to {self._newest:,}: open "
                f"perfetto_trace.json.gz of {file.parent} at https://ui.perfetto.dev, "
                f"or all of it with xprof --logdir={self._folder}."
            )
            self._log(summarize_trace(file, categorize_all(self._programs())))

    @contextmanager
    def _log_errors(self) -> Iterator[None]:
        """Logs errors instead of raising them."""
        try:
            yield
        except Exception as error:  # of any kind: training does not need a trace
            self._log(f"WARNING: Profiling failed ({self._setting}): {error}")
