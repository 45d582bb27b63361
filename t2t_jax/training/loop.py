"""The training loop: it counts, and calls what is due.

It knows neither files nor corpora: evaluating, saving and reporting are callables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from t2t_jax.training.guard import StopRequest
from t2t_jax.training.meter import Meter
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput
from t2t_jax.types import Batch, DataPosition

Record = dict[str, Any]


class Progress(NamedTuple):
    """Where a run stands; saved with every checkpoint.

    Attributes:
      step: optimizer steps made.
      position: the next batch to read.
      minutes: of training, evaluation and saving left out.
      best_bleu: highest development BLEU so far; -1 before the first evaluation.
      saved_minutes: `minutes` at the last periodic checkpoint.
      window: the `Sums` of the steps since the last training record, so that a
        resumed run writes the record that it would have written; () for none.
        (A record's gradient norm is that of its last step.)
    """

    step: int = 0
    position: DataPosition = DataPosition(0, 0)
    minutes: float = 0.0
    best_bleu: float = -1.0
    saved_minutes: float = 0.0
    window: tuple[float, ...] = ()


class Intervals(NamedTuple):
    """When something is due, in optimizer steps; 0 is never, but for `log`.

    Attributes:
      steps: at which training is complete.
      log: between training records.
      evaluate: between evaluations; the last step is always evaluated.
      show_seconds: seconds between two showings of figures, whatever the records.
      save_steps: between periodic checkpoints.
      save_minutes: between periodic checkpoints, in minutes of training.
      save_epochs: between periodic checkpoints, in passes over the corpus.
    """

    steps: int
    log: int
    evaluate: int
    show_seconds: float = math.inf
    save_steps: int = 0
    save_minutes: float = 0.0
    save_epochs: int = 0


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


class Callbacks(Protocol):
    """What the loop calls."""

    def log(self, record: Record) -> None:
        """Writes down figures over the steps since the last call."""

    def show(self, record: Record) -> None:
        """Shows figures over the steps since the last `log` to people."""

    def evaluate(self, state: TrainState, step: int) -> Record:
        """Scores the development set; the record holds `bleu` if it was decoded."""

    def is_time(self, step: int, due: bool) -> bool:
        """Tells whether to save, `due` by this process's clock; alike on all."""

    def save(
        self, state: TrainState, progress: Progress, kinds: tuple[str, ...]
    ) -> None:
        """Writes a checkpoint; `kinds` of periodic, best, final, stopped."""


def train(
    state: TrainState,
    batches: Iterable[tuple[DataPosition, Batch]],
    *,
    step: Step,
    progress: Progress,
    intervals: Intervals,
    callbacks: Callbacks,
    stop: StopRequest,
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

    Returns:
      The last state and where it stands. It has been saved.

    Raises:
      DivergedError: a loss or gradient was not finite; nothing of it was saved.
    """
    meter = Meter(window=progress.window, minutes=progress.minutes)
    for position, batch in batches:
        if not step.is_ready(batch):
            meter.settle(progress.step)
            with meter.paused():
                step.make_ready(batch)
        state, output = step(state, batch)
        meter.add(output)
        before, number = progress, progress.step + 1
        progress = progress._replace(
            step=number, position=position, minutes=meter.minutes
        )
        last = number == intervals.steps
        _report(meter, number, intervals=intervals, callbacks=callbacks)
        bleu = progress.best_bleu
        if last or (intervals.evaluate and number % intervals.evaluate == 0):
            meter.settle(number)
            with meter.paused():
                bleu = callbacks.evaluate(state, number).get("bleu", bleu)
        kinds = _kinds_due(
            before, progress, intervals=intervals, bleu=bleu, callbacks=callbacks
        )
        # Read once: a signal between here and the end would leave without saving.
        stopping = stop.reached(number) and not last
        if stopping:
            kinds += ("stopped",)
        progress = progress._replace(best_bleu=max(bleu, progress.best_bleu))
        if "periodic" in kinds:
            progress = progress._replace(saved_minutes=progress.minutes)
        if kinds:
            meter.settle(number)
            progress = progress._replace(window=meter.window)
            with meter.paused():
                callbacks.save(state, progress, kinds)
        if last or stopping:
            break
    return state, progress


def _report(
    meter: Meter, step: int, *, intervals: Intervals, callbacks: Callbacks
) -> None:
    """Writes down and shows figures, whichever of the two is due."""
    last = step == intervals.steps
    to_log = last or step % intervals.log == 0
    to_show = last or time.perf_counter() - meter.shown >= intervals.show_seconds
    if not (to_log or to_show):
        return
    record = meter.read(step)
    if to_log:
        callbacks.log(record)
        meter.close_window()
    if to_show:
        callbacks.show(record)
        meter.shown = time.perf_counter()


def _kinds_due(
    before: Progress,
    now: Progress,
    *,
    intervals: Intervals,
    bleu: float,
    callbacks: Callbacks,
) -> tuple[str, ...]:
    """Says which checkpoints are due after the step from `before` to `now`."""
    minutes, epochs = intervals.save_minutes, intervals.save_epochs
    is_late = now.minutes - now.saved_minutes >= minutes
    periodic = (
        (intervals.save_steps and now.step % intervals.save_steps == 0)
        or (minutes and callbacks.is_time(now.step, is_late))
        or (epochs and now.position.epoch // epochs > before.position.epoch // epochs)
    )
    due = {
        "periodic": bool(periodic),
        "best": bleu > now.best_bleu,
        "final": now.step == intervals.steps,
    }
    return tuple(kind for kind, is_due in due.items() if is_due)
