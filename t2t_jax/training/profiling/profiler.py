"""Writes a trace of some steps of a run, for whoever asks where their time goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import jax

from t2t_jax.distributed.processes import current_processes
from t2t_jax.training.profiling.hlo_categories import roles_of_all
from t2t_jax.training.profiling.trace_summary import summary


class Profiler:
    """Traces the steps that are asked for; what fails in it does not end the run.

    Args:
      steps: their numbers; empty for none.
      folder: where the trace goes; made when there is one.
    """

    def __init__(self, steps: range, *, folder: Path, say: Callable[[str], None]):
        self._steps, self._folder, self._say = steps, folder, say
        self._first = self._newest = 0
        self._is_open = self._is_tracing = False
        self._programs: Callable[[], Iterable[str]] = tuple

    def begins_with(self, step: int) -> bool:
        """Tells whether `begin` is due before a step; alike on all processes."""
        return step in self._steps and not self._first

    def ends_with(self, step: int) -> bool:
        """Tells whether `end` is due after a step; alike on all processes."""
        return self._is_open and step >= self._steps[-1]

    def begin(self, step: int) -> None:
        """Begins the trace.

        Args:
          step: the first one in it; those before it have ended on the devices.
        """
        self._first, self._is_open = step, True
        with self._unfailing():
            options = jax.profiler.ProfileOptions()
            # Calls of Python are many, and noting them slows the host down.
            options.python_tracer_level = 0
            jax.profiler.start_trace(
                self._folder, create_perfetto_trace=True, profiler_options=options
            )
            self._is_tracing = True

    def named(self, step: int) -> AbstractContextManager[object]:
        """Returns what a step is to be dispatched in, so that its trace names it."""
        if not self._is_tracing:
            return nullcontext()
        self._newest = step
        return jax.profiler.StepTraceAnnotation("train", step_num=step)

    def end(self) -> None:
        """Writes the trace, and says where it is and where the time went.

        The steps in it have ended on the devices.
        """
        self._write()
        # Whoever begins a step waits only so long for the others, in Gloo 30 s.
        current_processes().sync_exit_codes(f"profiled from {self._first}", 0)

    @contextmanager
    def watching(
        self, made: int, *, programs: Callable[[], Iterable[str]] = tuple
    ) -> Iterator[None]:
        """Writes what is traced by the end of the run, if the last step did not come.

        Args:
          made: steps of the run that were made before.
          programs: the compiled steps in XLA's words, as far as there are any then.
        """
        self._programs = programs
        if self._steps and self._steps[-1] <= made:
            self._say(
                f"{self._asked}: nothing is traced, since this run has made "
                f"{made:,} steps already."
            )
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            # Other processes must hear of a failure, and not wait for a trace before.
            if self._is_open and not (has_failed and current_processes().count > 1):
                self._write()

    @property
    def _asked(self) -> str:
        return f"profile.steps={self._steps[0]}:{self._steps[-1]}"

    def _write(self) -> None:
        self._is_open = False
        if not self._is_tracing:
            return
        self._is_tracing = False
        with self._unfailing():
            jax.profiler.stop_trace()
            files = self._folder.glob("plugins/profile/*/*.xplane.pb")
            file = max(files, key=lambda path: path.stat().st_mtime)
            self._say(
                f"Traced steps {self._first:,} to {self._newest:,}: open "
                f"perfetto_trace.json.gz of {file.parent} at https://ui.perfetto.dev, "
                f"or all of it with xprof --logdir={self._folder}."
            )
            self._say(summary(file, roles_of_all(self._programs())))

    @contextmanager
    def _unfailing(self) -> Iterator[None]:
        """Says what fails, and goes on."""
        try:
            yield
        except Exception as error:  # of any kind: nobody needs a trace to train
            self._say(f"WARNING: {self._asked} is given up: {error}")
