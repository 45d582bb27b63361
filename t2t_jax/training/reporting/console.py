"""Reports training progress on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any, TextIO

from t2t_jax.training.progress import Record
from t2t_jax.training.reporting.timestamps import Timestamps, format_clock

_SPARSE_SECONDS = 30.0
_BAR_SECONDS = 0.2


class Console:
    """Shows progress on stderr: a live bar on a terminal, else lines at intervals.

    Each line starts with the time (UTC) and the time since the start of the command.

    Args:
      total: steps of the complete run.
      every_seconds: between two lines where `stream` is not a terminal.
      stream: None for stderr.
      smoothed: whether the loss is label-smoothed; the perplexity never is.

    Attributes:
      every_seconds: between two updates; 1 on a terminal.
      timestamps: those of the lines.
    """

    def __init__(
        self,
        total: int,
        *,
        every_seconds: float,
        stream: TextIO | None = None,
        smoothed: bool = True,
    ):
        self._stream = stream or sys.stderr
        self._smoothed = smoothed
        self.timestamps = Timestamps()
        self._advanced, self._text = 0.0, ""
        self._total, self._first = total, 0
        self.every_seconds = 1.0 if self._stream.isatty() else every_seconds
        self._began = time.monotonic()
        self._bar: Any = None

    def start(self, step: int) -> None:
        """Starts showing progress, from `step` on."""
        self._first, self._began = step, time.monotonic()
        if self._stream.isatty():
            self._bar = _bar(self._total, step, self._stream)

    def show(self, record: Record) -> None:
        """Shows a training record."""
        step = record["step"]
        text = self._metrics(record)
        if self._bar is not None:
            self._text = text
            self._bar.update(self._bar.task_ids[0], completed=step, text=text)
            return
        share = 100 * step / self._total
        self.log(
            f"step {step:,}/{self._total:,} ({share:.0f} %)  {text}  "
            f"ETA {self._eta(step)}"
        )

    def advance(self, text: str) -> None:
        """Shows the progress of an activity between two steps.

        On a terminal in the bar; elsewhere a line every 30 seconds, or
        every `every_seconds` if that is more.
        """
        now = time.monotonic()
        if self._bar is not None:
            if now - self._advanced >= _BAR_SECONDS:
                self._advanced = now
                self._bar.update(self._bar.task_ids[0], text=text)
        elif now - self._advanced >= max(_SPARSE_SECONDS, self.every_seconds):
            self._advanced = now
            self.log(text)

    def begin(self, text: str) -> None:
        """Logs the start of an activity for `advance`."""
        self._advanced = time.monotonic()
        self.log(text)

    def log(self, text: str) -> None:
        """Logs a line, above the bar if there is one."""
        blank, text = "\n" * (len(text) - len(text.lstrip("\n"))), text.lstrip("\n")
        date = not self._stream.isatty()
        text = f"{blank}{self.timestamps.prefix(date=date)} {text}"
        if self._bar is not None:
            # The terminal wraps: a command wrapped by rich cannot be copied.
            self._bar.console.print(
                text, markup=False, highlight=False, emoji=False, soft_wrap=True
            )
            return
        # The reader is gone, or the disk is full; metrics.jsonl has it all.
        with suppress(OSError):
            print(text, file=self._stream, flush=True)

    def log_evaluation(self, record: Record, samples: str) -> None:
        """Logs the metrics of an `eval` record, and sample translations."""
        bleu = f"BLEU {record['bleu']:.2f}" if "bleu" in record else "BLEU not computed"
        if self._bar is not None:  # replaces the progress of the evaluation
            self._bar.update(self._bar.task_ids[0], text=self._text)
        why = f"\n  {record['bleu_skipped']}." if "bleu_skipped" in record else ""
        self.log(
            f"step {record['step']:,}: development {self._losses(record)}  {bleu}  "
            f"({record['sentences']:,} sentences, {record['seconds']:.0f} s){why}"
            + f"\n{samples}"
            * bool(samples)
        )

    def close(self) -> None:
        """Stops the progress bar."""
        if self._bar is not None:
            self._bar.stop()

    def _eta(self, step: int) -> str:
        pace = (time.monotonic() - self._began) / max(step - self._first, 1)
        return format_clock(pace * (self._total - step))

    def _losses(self, record: Record) -> str:
        """Formats loss and perplexity, labelled as smoothed or not."""
        smoothed = " (smoothed)" * self._smoothed
        unsmoothed = " (not smoothed)" * self._smoothed
        return (
            f"loss{smoothed} {record['loss']:.3f}  "
            f"perplexity{unsmoothed} {record['perplexity']:.2f}"
        )

    def _metrics(self, record: Record) -> str:
        return (
            f"{self._losses(record)}  "
            f"lr {record['learning_rate']:.2e}  |grad| {record['gradient_norm']:.2f}  "
            f"{record['target_tokens_per_second']:,.0f} target tokens/s  "
            f"padding {100 * record['padding_fraction']:.1f} %"
        )


def _bar(total: int, start: int, stream: TextIO) -> Any:
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    # A narrow terminal truncates the metrics, not the step or the time left.
    metrics = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    steps = Column(no_wrap=True, min_width=len(f"step {total:,}/{total:,}"))
    bar = Progress(
        TextColumn("step {task.completed:,.0f}/{task.total:,.0f}", table_column=steps),
        BarColumn(bar_width=10),
        TextColumn("{task.percentage:.0f} %", table_column=Column(min_width=5)),
        TextColumn("{task.fields[text]}", table_column=metrics),
        TextColumn("ETA"),
        TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
        console=RichConsole(file=stream),
        expand=True,
    )
    bar.add_task("", total=total, completed=start, text="")
    bar.start()
    return bar
