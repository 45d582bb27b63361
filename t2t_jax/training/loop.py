"""The training loop: it counts, and calls what is due.

It knows neither files nor corpora: evaluating, saving and reporting are callables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from t2t_jax.parallelism.faults import strike
from t2t_jax.training.deadlines import Deadlines
from t2t_jax.training.guard import StopRequest
from t2t_jax.training.meter import Meter
from t2t_jax.training.progress import Intervals, Progress
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput
from t2t_jax.training.turn import Callbacks, Turn
from t2t_jax.types import Batch, DataPosition

_SHOWN = (1, 20)
"""Steps of a process whose metrics are shown whatever the clock says: that it trains
at all, and enough to estimate the time left."""


class Step(Protocol):
    """A training step that may have to be compiled for the batch at hand."""

    def __call__(
        self, state: TrainState, batch: Batch
    ) -> tuple[TrainState, StepOutput]:
        """Makes a step on a batch that it is ready for."""

    def is_ready(self, batch: Batch) -> bool:
        """Tells whether `__call__` can begin at once."""

    def make_ready(self, batch: Batch) -> None:
        """Compiles what the batch needs."""


def train(
    state: TrainState,
    batches: Iterable[tuple[DataPosition, Batch]],
    *,
    step: Step,
    progress: Progress,
    intervals: Intervals,
    callbacks: Callbacks,
    stop: StopRequest,
    deadlines: Deadlines,
) -> tuple[TrainState, Progress]:
    """Runs steps until `intervals.steps`, or until `stop` is requested.

    Args:
      state: after `progress.step` steps; its buffers are donated.
      batches: from `progress.position` on, each with the position after it.
      step: the compiled step; compiling is not training time.
      progress: where the run stands.
      intervals: what is due when.
      callbacks: what is called when it is due.
      stop: asked after each step.
      deadlines: told of each step, and of what is done between two.

    Returns:
      The last state and where it stands. It has been saved.

    Raises:
      DivergedError: `callbacks.skip` says that too many steps made no update.
    """
    meter = Meter(progress, skip=callbacks.skip)
    turn = Turn(meter, intervals, callbacks, stop, deadlines)
    is_over, made = progress.completes(intervals.steps), 0
    if progress.pending:
        progress, is_over = turn.close(state, progress, progress)
    for position, batch in () if is_over else batches:
        if not step.is_ready(batch):
            meter.settle()
            with turn.paused("compiling"):
                step.make_ready(batch)
        before, number = progress, progress.step + 1
        with turn.opening(number):
            state, output = step(state, batch)
        meter.add(output, step=number, place=before.position)
        deadlines.made(number)
        progress = progress._replace(
            step=number, position=position, minutes=meter.minutes
        )
        strike(number)
        made += 1
        _report(meter, number, made=made, intervals=intervals, callbacks=callbacks)
        progress, is_over = turn.close(state, before, progress)
        if is_over:
            break
    return state, progress


def _report(
    meter: Meter,
    step: int,
    *,
    made: int,
    intervals: Intervals,
    callbacks: Callbacks,
) -> None:
    """Writes down and shows figures, whichever of the two is due.

    What is written down depends on the step alone, so that a resumed run writes the
    same records; what is shown depends on the clock and on the steps `made` here.
    """
    last = step == intervals.steps
    to_log = last or step == 1 or step % intervals.log == 0
    to_show = last or made in _SHOWN
    to_show |= time.perf_counter() - meter.shown >= intervals.show_seconds
    if not (to_log or to_show):
        return
    record = meter.read(step)
    if record and to_log:
        callbacks.log(record)
    if record and to_show:
        callbacks.show(record)
    if to_log:
        meter.close_window()
    if to_show:
        meter.shown = time.perf_counter()
