"""Metrics of the steps since the last record, training time, and skipped steps."""

from __future__ import annotations

import math
import shlex
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax

from t2t_jax.errors import DivergedError
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.loss import Sums, known, summarise
from t2t_jax.training.progress_and_patience import Record, RunProgress
from t2t_jax.training.step import StepOutput
from t2t_jax.types import DataPosition

T = TypeVar("T")
ACTIVITIES = "training", "data", "compiling", "evaluating", "saving", "other"
"""What a training loop spends time on; `data` is a wait for the next batch, in which
the devices ran out of steps."""


class _Window(NamedTuple):
    """Steps of which a record is made.

    Attributes:
      sums: `Sums` over them; () for none.
      timed_tokens: target tokens of those that this process trained.
      timed_seconds: which it took for them.
    """

    sums: tuple[float, ...] = ()
    timed_tokens: float = 0.0
    timed_seconds: float = 0.0

    def joined(self, other: _Window) -> _Window:
        """Returns two windows as one."""
        parts = [window.sums for window in (self, other) if window.sums]
        sums = tuple(map(sum, zip(*parts, strict=True)))
        tokens = self.timed_tokens + other.timed_tokens
        return _Window(sums, tokens, self.timed_seconds + other.timed_seconds)


class StepMeter:
    """Sums the outputs of steps, and measures training time.

    Skipped updates do not enter the metrics; they are counted, and passed to `skip`.

    Args:
      skip: called with the record of each skipped update, in order.

    Attributes:
      last_shown: when metrics were last shown, by `time.perf_counter`.
      wall_seconds: of this process since the meter was made, by activity; their sum is
        the time that has passed.
    """

    def __init__(self, progress: RunProgress, *, skip: Callable[[Record], None]):
        self._pending: deque[tuple[int, DataPosition, StepOutput]] = deque()
        self._skip, self._progress = skip, progress
        self._window, self._last = _Window(progress.window), _Window()
        self._seconds = 60 * progress.minutes
        self.wall_seconds = dict.fromkeys(ACTIVITIES, 0.0)
        self.last_shown = self._started = time.perf_counter()

    @property
    def minutes(self) -> float:
        """Minutes of training so far."""
        return (self._seconds + time.perf_counter() - self._started) / 60

    @contextmanager
    def paused(self, activity: str = "other") -> Iterator[None]:
        """Excludes the enclosed time from the training time."""
        self._lap()
        yield
        self.wall_seconds[activity] += time.perf_counter() - self._started
        self._started = time.perf_counter()

    def fetch(self, batches: Iterable[T]) -> Iterator[T]:
        """Yields batches; counts a wait at whose end no step was left to run."""
        iterator = iter(batches)
        while True:
            began = time.perf_counter()
            batch = next(iterator, None)
            last: Any = self._pending[-1][2].gradient_norm if self._pending else None
            if last is None or last.is_ready():
                waited = time.perf_counter() - began
                self.wall_seconds["data"] += waited
                self.wall_seconds["training"] -= waited
            if batch is None:
                return
            yield batch

    def add(self, output: StepOutput, *, step: int, position: DataPosition) -> None:
        """Adds a dispatched step."""
        # Two steps in flight hide the host's work; more would only hold batches, and
        # delay the end of a run that has diverged.
        while len(self._pending) > 1:
            self._collect(*self._pending.popleft())
        self._pending.append((step, position, output))

    def drain(self) -> None:
        """Waits for all dispatched steps, and adds them to the window."""
        while self._pending:
            self._collect(*self._pending.popleft())

    def store_in(self, progress: RunProgress) -> RunProgress:
        """Stores the window and the counts of drained steps in a progress."""
        names = ("gradient_norm", "skipped", "skipped_in_a_row")
        counts: Any = {name: getattr(self._progress, name) for name in names}
        return progress._replace(window=self._window.sums, **counts)

    def make_record(self, step: int, *, to_show: bool = False) -> Record:
        """Returns the record since `close_window`; {} if all updates were skipped.

        Args:
          to_show: whether it is of the window before too while this one is short, with
            less than half of its tokens: the mean of a batch or two would look like a
            jump of the loss.
        """
        window = self._now()
        if not window.sums:
            return {}
        if to_show and 2 * window.timed_tokens < self._last.timed_tokens:
            window = window.joined(self._last)
        sums = Sums(*window.sums)
        # The clocks of virtual machines and of tests may not advance.
        seconds = max(window.timed_seconds, 1e-9)
        return {
            "step": step,
            "kind": "train",
            **summarise(sums),
            "target_tokens": int(sums.target_tokens),
            "gradient_norm": self._progress.gradient_norm,
            "target_tokens_per_second": window.timed_tokens / seconds,
            "wall_seconds": {k: round(v, 3) for k, v in self.wall_seconds.items()},
            "skipped": self._progress.skipped,
            **self._progress.position._asdict(),
        }

    def close_window(self) -> None:
        """Starts the next record after the steps so far."""
        self._last, self._window = self._now(), _Window()

    def _now(self) -> _Window:
        self.drain()
        self._lap()
        return self._window

    def _collect(self, step: int, position: DataPosition, output: StepOutput) -> None:
        """Waits for a step, and adds it to the window or to the skipped ones."""
        sums, gradient_norm, applied = jax.device_get(output)
        norm, tokens = float(gradient_norm), float(sums.target_tokens)
        before = self._progress._replace(position=position)
        if applied:
            self._progress = before._replace(gradient_norm=norm, skipped_in_a_row=0)
            figures = tuple(map(float, known(sums)))
            self._window = self._window.joined(_Window(figures, tokens))
            return
        skipped, in_a_row = before.skipped + 1, before.skipped_in_a_row + 1
        self._progress = before._replace(skipped=skipped, skipped_in_a_row=in_a_row)
        loss = float(sums.loss) / tokens if tokens else math.nan
        record: Record = {"step": step, "kind": "skipped"}
        for name, value in (("loss", loss), ("gradient_norm", norm)):
            record[name] = value if math.isfinite(value) else None  # JSON has no NaN.
        self._skip({**record, "in_a_row": in_a_row, **position._asdict()})

    def _lap(self) -> None:
        began, self._started = self._started, time.perf_counter()
        seconds = self._started - began
        self._seconds += seconds
        self.wall_seconds["training"] += seconds
        self._window = self._window.joined(_Window(timed_seconds=seconds))


def skip_message(record: Record, *, workdir: Path) -> str:
    """Returns the one-line warning of a skipped update."""
    step = record["step"]
    return (
        f"WARNING: Skipped the update of step {step:,} ({_reasons(record)}; epoch "
        f"{record['epoch']}, batch {record['batch']}). To print its text: "
        f"--mode=show_batch --workdir={shlex.quote(str(workdir))} --step={step}"
    )


def check_divergence(record: Record, *, config: TrainingConfig) -> None:
    """Aborts after too many consecutive skipped updates.

    Raises:
      DivergedError: `max_bad_steps` is reached, or the loss is not finite and
        `on_nonfinite` is "stop".
    """
    step, number = record["step"], record["in_a_row"]
    is_finite = None not in (record["loss"], record["gradient_norm"])
    limit = f"training.max_bad_steps={config.max_bad_steps}"
    if number < config.max_bad_steps:
        if config.on_nonfinite != "stop" or is_finite:
            return
        limit, number = "training.on_nonfinite=stop", 1
    steps = f"s of steps {step - number + 1:,} to" if number > 1 else " of step"
    raise DivergedError(
        f"Training diverged: skipped the update{steps} {step:,} ({limit}). Step "
        f"{step:,}, batch {record['batch']} of epoch {record['epoch']}, had "
        f"{_reasons(record)}.\n"
        "All checkpoints are valid: skipped updates do not change them. "
        f"--mode=show_batch --step={step} with the same flags prints the text of that "
        "step.\nFix that text, or train in a new workdir with a lower "
        "config.optimizer.peak_learning_rate or more config.optimizer.warmup_steps."
    )


def uniform_guess_warning(record: Record, *, vocab_size: int, warmup_steps: int) -> str:
    """Returns the warning of a development loss worse than a uniform guess, or "".

    Before the end of the warm-up, where the model has hardly learned, the loss may be
    twice that of the guess.

    Args:
      record: an evaluation.
    """
    step, nll, uniform = record["step"], record["nll"], math.log(vocab_size)
    if nll <= uniform * (1 if step >= warmup_steps else 2):
        return ""
    return (
        f"WARNING: The development loss at step {step:,}, {nll:.4g} nats per token "
        f"without smoothing, is worse than a uniform guess, log({vocab_size:,}) = "
        f"{uniform:.2f}: training may have diverged. Train in a new workdir with a "
        "lower config.optimizer.peak_learning_rate or more "
        "config.optimizer.warmup_steps."
    )


def _reasons(record: Record) -> str:
    loss, norm = record["loss"], record["gradient_norm"]
    shown = ("not finite" if x is None else f"{x:.4g}" for x in (loss, norm))
    above = " (above training.skip_gradient_norm)" * (None not in (loss, norm))
    return "loss {}, gradient norm {}".format(*shown) + above
