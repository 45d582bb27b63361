"""Writes metrics.jsonl and TensorBoard event files, and the times of records."""

from __future__ import annotations

import json
import math
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from t2t_jax.files import atomic_write, require_file
from t2t_jax.quantities import format_clock
from t2t_jax.training.progress_and_patience import Record, RunProgress


class Timestamps:
    """The clock of a command, started at construction."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def elapsed(self) -> float:
        """Returns the seconds since the start, by a monotonic clock."""
        return time.monotonic() - self._began

    def fields(self) -> dict[str, str | float]:
        """Returns the time fields of a record of metrics.jsonl."""
        return {"time": utc("%Y-%m-%dT%H:%M:%SZ"), "elapsed": round(self.elapsed(), 3)}

    def prefix(self, *, date: bool) -> str:
        """Returns the prefix of a log line, with or without the date."""
        now = utc("%Y-%m-%d %H:%M:%SZ" if date else "%H:%M:%SZ")
        return f"[{now} +{format_clock(self.elapsed())}]"


def utc(form: str) -> str:
    """Formats the current time in UTC; `form` is that of `time.strftime`."""
    return time.strftime(form, time.gmtime())


class RetryingAppendFile:
    """Appends records in order; after a failed write, it is retried with the next one.

    So the file never lacks a record in its middle, and only the last may be truncated.
    """

    def __init__(self, path: Path):
        # Unbuffered: Python's buffer would lose its position when a write fails.
        self._file, self._kept = path.open("ab", buffering=0), b""

    def write(self, record: bytes) -> None:
        """Writes a record, unbuffered.

        Raises:
          OSError: the write failed; the record is written before the next one.
        """
        self._kept += record
        while self._kept:
            self._kept = self._kept[self._file.write(self._kept) :]

    def close(self) -> None:
        """Writes pending records, and closes the file.

        Raises:
          OSError: the last records are lost.
        """
        try:
            self.write(b"")
        finally:
            self._file.close()


DESCRIPTIONS = {
    "loss": "cross entropy with label smoothing, nats per target token",
    "nll": "cross entropy without label smoothing, nats per target token",
    "perplexity": "exp(nll): without label smoothing, per subword",
    "accuracy": "share of target tokens predicted right with the reference before them",
    "consistency": "divergence between two passes (SimCut, R-Drop), nats per token",
    "padding_fraction": "share of token slots that are padding",
    "target_tokens": "target tokens since the last record",
    "gradient_norm": "L2 norm of the last gradient, without frozen parameters",
    "target_tokens_per_second": "target tokens trained on per second",
    "skipped": "steps of the run without an update",
    "learning_rate": "of the last update",
    "epoch": "pass over the training corpus, from 0",
    "batch": "batch of that epoch, from 0",
    "bleu": "sacreBLEU on raw development text",
    "chrf": "chrF on raw development text",
    "f1": "of labelled brackets, development trees",
    "precision": "of labelled brackets, development trees",
    "recall": "of labelled brackets, development trees",
    "repaired": "development outputs that were not a tree over the sentence",
    "sentences": "development sentences translated",
    "unfinished": "translations that reached their length limit",
    "seconds": "duration of the evaluation",
    "in_a_row": "consecutive steps without an update",
    "best_bleu": "highest development BLEU of the run",
    "best_f1": "highest development F1 of the run",
    "minutes": "of training, without evaluation and checkpoints",
}


@contextmanager
def _unimportable(*names: str) -> Iterator[None]:
    """Hides packages that are not imported yet, of which tensorboardX needs none.

    It imports them where they are installed; torch alone takes seconds.
    """
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


class EventFile(RetryingAppendFile):
    """A new TensorBoard event file in a directory.

    Args:
      step: the current step of the run; TensorBoard drops later steps of earlier files,
        as a resumed run writes them again.
    """

    def __init__(self, directory: Path, *, step: int):
        with _unimportable("torch", "boto3", "google.cloud"):
            from tensorboardX.proto.event_pb2 import SessionLog

        suffix = f"{time.time():.0f}.{socket.gethostname()}.{os.getpid()}"
        super().__init__(directory / f"events.out.tfevents.{suffix}")
        self._append(file_version="brain.Event:2")
        if step:
            self._append(step=step + 1, session_log=SessionLog(status=SessionLog.START))

    def append(self, step: int, metrics: dict[str, float]) -> None:
        """Writes metrics by their tags, `kind/name`.

        Raises:
          OSError: the write failed; it is retried before the next one.
        """
        from tensorboardX.summary import scalar

        about = {tag: DESCRIPTIONS.get(tag.partition("/")[2], "") for tag in metrics}
        scalars = (scalar(tag, value, "", about[tag]) for tag, value in metrics.items())
        self._append(*scalars, step=step)

    def append_text(self, step: int, tag: str, text: str) -> None:
        """Writes a text, shown verbatim."""
        from tensorboardX.summary import text as text_summary

        # Indented by four, it is a block of code to TensorBoard's Markdown.
        block = "\n".join(f"    {line}" for line in text.splitlines())
        self._append(text_summary(tag, block), step=step)

    def append_settings(self, settings: Mapping[str, Any], metrics: list[str]) -> None:
        """Writes the configuration of a run, for the page "HParams"."""
        from tensorboardX.summary import hparams

        # The third summary would say that the run has ended.
        for summary in hparams(settings, dict.fromkeys(metrics))[:2]:
            self._append(summary)

    def _append(self, *summaries: Any, **fields: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.record_writer import masked_crc32c

        event = Event(wall_time=time.time(), **fields)
        for summary in summaries:
            event.summary.MergeFrom(summary)
        data = event.SerializeToString()
        length = struct.pack("<Q", len(data))
        checked = (x + struct.pack("<I", masked_crc32c(x)) for x in (length, data))
        self.write(b"".join(checked))


TIME_FIELDS = (
    *("time", "elapsed", "seconds", "minutes", "wall_seconds"),
    "target_tokens_per_second",
)
"""Fields of records that depend on the clock; all others are the same bit for bit in a
run that was stopped and resumed."""

_COMPARED = ["eval/bleu", "eval/perplexity", "eval/loss"]


def read_metrics(path: Path) -> Iterator[Record]:
    """Yields the records of a metrics.jsonl, without truncated lines.

    Raises:
      DataError: it is a directory, a pipe or a device.
    """
    if not path.exists():
        return
    require_file(path, advice="Move it away.")
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(record, dict) and {"step", "kind"} <= record.keys():
                yield record


def open_metrics(path: Path, *, step: int) -> RetryingAppendFile:
    """Opens metrics.jsonl: one JSON object a line, each with `step` and `kind`.

    Args:
      step: the current step of the run; later records are removed, since their steps
        run again.
    """
    records = (record for record in read_metrics(path) if record["step"] <= step)
    # A resumed run has no final record yet.
    kept = (_line(record) for record in records if record["kind"] != "final")
    atomic_write(path, b"".join(kept))
    return RetryingAppendFile(path)


def _line(record: Record) -> bytes:
    finite = {  # JSON has neither NaN nor infinity.
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }
    text = json.dumps(finite, ensure_ascii=False) + "\n"
    return text.encode(errors="backslashreplace")


class MetricsWriter:
    """Writes metrics.jsonl and TensorBoard's event files.

    A full or failing disk costs records, but does not end the run.

    Args:
      step: the current step of the run.
      log: reports when writing fails, and when it succeeds again.
      settings: the configuration, for TensorBoard's page "HParams".
    """

    def __init__(
        self,
        workdir: Path,
        *,
        step: int,
        log: Callable[[str], None],
        timestamps: Timestamps | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        self._timestamps = timestamps or Timestamps()
        self._metrics = open_metrics(workdir / "metrics.jsonl", step=step)
        self._events, self._log = EventFile(workdir, step=step), log
        self._failing: set[str] = set()
        if settings:
            write = self._events.append_settings
            self.attempt("The event file", write, settings, _COMPARED)

    def write(self, record: Record) -> None:
        """Writes a record to metrics.jsonl, with the time, and to TensorBoard."""
        metrics = {
            f"{record['kind']}/{name}": value
            for name, value in record.items()
            if isinstance(value, int | float) and name != "step"
        }
        record = {**record, **self._timestamps.fields()}
        self.attempt("metrics.jsonl", self._metrics.write, _line(record))
        self.attempt("The event file", self._events.append, record["step"], metrics)

    def write_samples(self, step: int, samples: str) -> None:
        """Writes sample translations for TensorBoard's page "Text"."""
        write = self._events.append_text
        self.attempt("The event file", write, step, "samples", samples)

    def attempt(self, what: str, write: Callable[..., None], *args: Any) -> None:
        """Writes something optional: errors are logged, once until it succeeds."""
        try:
            write(*args)
        except OSError as error:
            if what not in self._failing:
                self._failing.add(what)
                self._log(
                    f"WARNING: {what} cannot be written: {error.strerror}. Training "
                    "continues. Free disk space or fix permissions."
                )
        else:
            if what in self._failing:
                self._failing.remove(what)
                self._log(f"{what} is written again.")

    def write_final(self, progress: RunProgress, *, score: str = "bleu") -> None:
        """Writes the record of a complete run.

        Args:
          score: which field of evaluations decides what is best.
        """
        best, epoch = progress.best_score, progress.position.epoch
        record: Record = {"step": progress.step, "kind": "final", "epoch": epoch}
        known = {f"best_{score}": best} if best >= 0 else {}
        self.write({**record, **known, "minutes": progress.minutes})

    def close(self) -> None:
        """Writes pending records, and closes the files."""
        self.attempt("metrics.jsonl", self._metrics.close)
        self.attempt("The event file", self._events.close)


class NullMetricsWriter(MetricsWriter):
    """Writes nothing: used on all processes but process 0."""

    def __init__(self) -> None:
        """Opens nothing."""

    def _ignore(self, *_: Any, **__: Any) -> None:
        """Does nothing."""

    write = write_samples = write_final = attempt = close = _ignore
