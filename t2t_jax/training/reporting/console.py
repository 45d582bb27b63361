"""Reports training progress on stderr, with the loss so far as a line of blocks."""

from __future__ import annotations

import itertools
import math
import os
import statistics
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TextIO

from t2t_jax.data.files.progress_bar import ProgressBar, ProgressLabels, print_line
from t2t_jax.training.progress_and_patience import Record, format_perplexity
from t2t_jax.training.reporting.metrics_writer import Timestamps

_SPARSE_SECONDS = 30.0
_BAR_SECONDS = 0.2
_BAR_PLOT = 8  # characters


class Console:
    """Shows progress on stderr: a live bar on a terminal, else lines at intervals.

    Each line starts with the time (UTC) and the time since the start of the command.
    A terminal that has the characters also shows the loss and the development BLEU so
    far as sparklines.

    Args:
      total: steps of the complete run.
      every_seconds: between two lines where `stream` is not a terminal; 0 for none.
      smoothed: whether the loss is label-smoothed; the perplexity never is.

    Attributes:
      stream: where it is shown.
      every_seconds: between two updates; 1 on a terminal.
    """

    def __init__(
        self,
        total: int,
        *,
        every_seconds: float,
        stream: TextIO | None = None,
        smoothed: bool = True,
    ):
        self.stream = stream or sys.stderr
        self._smoothed, self._total = smoothed, total
        self.timestamps = Timestamps()
        self._advanced, self._text = 0.0, ""
        self._plots = shows_sparklines(self.stream)
        self._series: dict[str, list[float]] = {"loss": [], "BLEU": []}
        self.every_seconds = 1.0 if self.stream.isatty() else every_seconds or math.inf
        work = ProgressLabels("step")
        self._steps = ProgressBar(self.log, stream=self.stream, work=work)

    def start(self, step: int, *, history: Iterable[Record] = ()) -> None:
        """Starts showing progress, from `step` on.

        Args:
          history: the records of the run so far; read only if they are shown.
        """
        for record in history if self._plots else ():
            self.remember(record)
        self._steps.start(total=self._total, done=step)

    def show(self, record: Record) -> None:
        """Shows a training record."""
        self._text = self._metrics(record)
        self._steps.show(self._text, done=record["step"])

    def remember(self, record: Record) -> None:
        """Adds the loss of a training record, or the BLEU of an `eval` one."""
        name = {"train": "loss", "eval": "BLEU"}.get(record["kind"], "")
        if (value := record.get(name.lower())) is not None:
            self._series[name].append(value)

    def advance(self, text: str) -> None:
        """Shows the progress of an activity between two steps.

        In the bar, or as a line every 30 seconds, or `every_seconds` if that is more.
        """
        has_bar, sparse = self._steps.has_bar, max(_SPARSE_SECONDS, self.every_seconds)
        now = time.monotonic()
        if now - self._advanced >= (_BAR_SECONDS if has_bar else sparse):
            self._advanced = now
            (self._steps.show if has_bar else self.log)(text)

    def begin(self, text: str) -> None:
        """Logs the start of an activity for `advance`."""
        self._advanced = time.monotonic()
        self.log(text)

    def log(self, text: str) -> None:
        """Logs a line, above the bar if there is one."""
        blank, text = "\n" * (len(text) - len(text.lstrip("\n"))), text.lstrip("\n")
        date = not self.stream.isatty()
        print_line(f"{blank}{self.timestamps.prefix(date=date)} {text}", self.stream)

    def log_evaluation(self, record: Record, samples: str) -> None:
        """Logs the metrics of an `eval` record, and sample translations."""
        bleu = f"BLEU {record['bleu']:.2f}" if "bleu" in record else "BLEU not computed"
        if by := record.get("bleu_by_direction"):
            each = (f"{direction} {value:.2f}" for direction, value in by.items())
            bleu += f" ({', '.join(each)})"
        if "f1" in record:
            bleu = f"F1 {record['f1']:.2f}, {record['repaired']:,} repaired  {bleu}"
        if self._steps.has_bar:  # replaces the progress of the evaluation
            self._steps.show(self._text)
        self.remember({**record, "kind": "eval"})
        why = f"\n  {record['bleu_skipped']}." if "bleu_skipped" in record else ""
        plots = "  ".join(
            f"{name} {sparkline(series)} {series[0]:.2f} to {series[-1]:.2f}"
            for name, series in self._series.items()
            if series
        )
        self.log(
            f"step {record['step']:,}: development {self._losses(record)}  {bleu}  "
            f"({record['sentences']:,} sentences, {record['seconds']:.0f} s){why}"
            + f"\n  {plots}" * bool(self._plots and self._series["loss"])
            + f"\n{samples}" * bool(samples)
        )

    def close(self) -> None:
        """Stops the progress bar."""
        self._steps.close()

    def _losses(self, record: Record, *, plot: str = "", short: bool = False) -> str:
        names = ["loss", "perplexity"]
        if self._smoothed and not short:
            names = ["loss (smoothed)", "perplexity (not smoothed)"]
        loss = f"{names[0]} {record['loss']:.3f}{plot}"
        return f"{loss}  {names[1]} {format_perplexity(record['perplexity'])}"

    def _metrics(self, record: Record) -> str:
        """Formats a record; in several lines where the terminal is narrow."""
        plot = f" {sparkline(self._series['loss'], width=_BAR_PLOT)}" * self._plots
        rate = record.get("learning_rate")  # Not known of an optimizer from Python.
        others = [] if rate is None else [f"lr {rate:.2e}"]
        others += [
            f"|grad| {record['gradient_norm']:.2f}",
            f"{record['target_tokens_per_second']:,.0f} target tokens/s",
            f"padding {100 * record['padding_fraction']:.1f} %",
        ]
        line = "  ".join([self._losses(record, plot=plot), *others])
        if len(line) <= (width := self._steps.text_width or math.inf):
            return line
        losses = self._losses(record, plot=plot, short=True).split("  ")
        return _wrap([*losses, *others], int(width))


def _wrap(parts: Sequence[str], width: int) -> str:
    r"""Joins parts to lines of at most `width` characters, if each part fits.

    Example:
      >>> _wrap(["loss 2.5", "lr 1e-3", "padding 3 %"], 19)
      'loss 2.5  lr 1e-3\npadding 3 %'
    """
    text = "  ".join(part.replace(" ", "\xa0") for part in parts)
    wrapped = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    return wrapped.replace("\xa0", " ")


_BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 16
"""Most characters of a sparkline."""


def sparkline(values: Sequence[float], *, width: int = WIDTH) -> str:
    """Plots values as blocks of eight heights, the lowest to the highest.

    Args:
      values: in order; those that are not finite are left out.
      width: most characters; more values are averaged as by `thinned`.

    Example:
      >>> sparkline([1, 2, 3, 5, 8]), sparkline([7, 7]), sparkline([math.nan])
      ('▁▂▃▅█', '▁▁', '')
      >>> sparkline(range(1000), width=4)
      '▁▃▆█'
    """
    kept = thinned(values, most=width)
    low, top = min(kept, default=0.0), len(_BLOCKS) - 1
    span = max(kept, default=0.0) - low or 1.0
    return "".join(_BLOCKS[round((value - low) / span * top)] for value in kept)


def thinned(values: Sequence[float], *, most: int = 8 * WIDTH) -> list[float]:
    """Averages a series in at most `most` groups of about equal size.

    Args:
      values: in order; those that are not finite are left out.

    Example:
      >>> thinned(range(1, 9), most=4)
      [1.5, 3.5, 5.5, 7.5]
    """
    kept = [value for value in values if math.isfinite(value)]
    groups = min(most, len(kept))
    bounds = [round(i * len(kept) / groups) for i in range(groups + 1)] if kept else []
    return [statistics.fmean(kept[a:b]) for a, b in itertools.pairwise(bounds)]


def shows_sparklines(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether a stream is a terminal that has the blocks of a sparkline.

    Not if TERM is dumb, or NO_COLOR is set, as where plain output is wanted.
    """
    if environ.get("TERM") == "dumb" or environ.get("NO_COLOR") or not stream.isatty():
        return False
    with suppress(LookupError, UnicodeEncodeError):
        return bool(_BLOCKS.encode(getattr(stream, "encoding", None) or "ascii"))
    return False
