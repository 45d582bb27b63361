"""Writes machine-readable metrics: metrics.jsonl, and TensorBoard's event files."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t2t_jax.files import atomic_write, require_file
from t2t_jax.training.progress import Record, RunProgress
from t2t_jax.training.reporting.timestamps import Timestamps


class RetryingAppendFile:
    """Appends records in order; what the disk refuses is kept for the next time.

    So a file never lacks a record in its middle, and none is torn but the last one.

    Args:
      path: the file; made if it is not there.
    """

    def __init__(self, path: Path):
        # Unbuffered: Python's buffer would lose its place when a write fails.
        self._file = path.open("ab", buffering=0)
        self._kept = b""

    def append(self, record: bytes) -> None:
        """Writes a record, at once.

        Raises:
          OSError: it cannot be written now. It comes before the next one then.
        """
        self._kept += record
        while self._kept:
            self._kept = self._kept[self._file.write(self._kept) :]

    def close(self) -> None:
        """Writes what was kept, and closes the file.

        Raises:
          OSError: the last records are lost.
        """
        try:
            self.append(b"")
        finally:
            self._file.close()


DESCRIPTIONS = {
    "loss": "cross entropy with label smoothing, nats per target token",
    "nll": "cross entropy without label smoothing, nats per target token",
    "perplexity": "exp(nll): without label smoothing, per subword",
    "accuracy": "share of target tokens predicted right with the reference before them",
    "padding_fraction": "share of token slots that are padding",
    "target_tokens": "target tokens since the last record",
    "gradient_norm": "L2 norm of the gradient of the last update",
    "target_tokens_per_second": "target tokens trained on per second",
    "skipped": "steps of the run without an update",
    "learning_rate": "of the last update",
    "epoch": "pass over the training corpus, from 0",
    "batch": "batch of that epoch, from 0",
    "bleu": "sacreBLEU on raw development text",
    "chrf": "chrF on raw development text",
    "sentences": "development sentences translated",
    "unfinished": "translations that reached their length limit",
    "seconds": "duration of the evaluation",
    "in_a_row": "consecutive steps without an update",
    "best_bleu": "highest development BLEU of the run",
    "minutes": "of training, without evaluation and checkpoints",
}
"""What TensorBoard says of each metric."""


class EventFile:
    """Metrics over steps, in a new file of a directory.

    Args:
      step: the step the run stands at; what earlier files say of later ones is
        forgotten by TensorBoard, as a resumed run will write it again.
    """

    def __init__(self, directory: Path, *, step: int):
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._described: set[str] = set()
        place = f"{time.time():.0f}.{socket.gethostname()}.{os.getpid()}"
        self._file = RetryingAppendFile(directory / f"events.out.tfevents.{place}")
        self._append(Event(file_version="brain.Event:2"))
        if step:
            start = SessionLog(status=SessionLog.START)
            self._append(Event(step=step + 1, session_log=start))

    def append(self, step: int, figures: dict[str, float]) -> None:
        """Writes metrics by their tags, `kind/name`.

        Raises:
          OSError: they cannot be written now; they come before the next ones then.
        """
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata

        values = []
        for tag, value in figures.items():
            values.append(Summary.Value(tag=tag, simple_value=value))
            if tag not in self._described:  # The first value of a tag says it for all.
                self._described.add(tag)
                plugin = SummaryMetadata.PluginData(plugin_name="scalars")
                metadata = SummaryMetadata(
                    plugin_data=plugin,
                    summary_description=DESCRIPTIONS.get(tag.partition("/")[2], ""),
                )
                values[-1].metadata.CopyFrom(metadata)
        self._append(Event(step=step, summary=Summary(value=values)))

    def append_text(self, step: int, tag: str, text: str) -> None:
        """Writes a text, which is shown as it is.

        Raises:
          OSError: as in `append`.
        """
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.summary import text as text_summary

        # Indented by four, it is a block of code to TensorBoard's Markdown.
        block = "\n".join(f"    {line}" for line in text.splitlines())
        self._append(Event(step=step, summary=text_summary(tag, block)))

    def append_settings(self, settings: Mapping[str, Any], metrics: list[str]) -> None:
        """Writes the configuration of a run, for the page "HParams".

        Args:
          settings: numbers, strings and truth values by their names.
          metrics: the tags that the page compares runs by.

        Raises:
          OSError: as in `append`.
        """
        from tensorboardX.proto import api_pb2
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.plugin_hparams_pb2 import (
            HParamsPluginData,
            SessionStartInfo,
        )
        from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata

        start, infos = SessionStartInfo(), []
        for name, value in settings.items():
            field, kind = _field_of(value)
            setattr(start.hparams[name], field, value)
            data_type = api_pb2.DataType.Value(kind)
            infos.append(api_pb2.HParamInfo(name=name, type=data_type))
        compared = [
            api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metrics
        ]
        experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=compared)
        for tag, data in (
            ("experiment", HParamsPluginData(experiment=experiment)),
            ("session_start_info", HParamsPluginData(session_start_info=start)),
        ):
            plugin = SummaryMetadata.PluginData(
                plugin_name="hparams", content=data.SerializeToString()
            )
            value = Summary.Value(
                tag=f"_hparams_/{tag}", metadata=SummaryMetadata(plugin_data=plugin)
            )
            self._append(Event(summary=Summary(value=[value])))

    def close(self) -> None:
        """Closes the file.

        Raises:
          OSError: the last figures are lost.
        """
        self._file.close()

    def _append(self, event: Any) -> None:
        from tensorboardX.record_writer import masked_crc32c

        event.wall_time = time.time()
        data = event.SerializeToString()
        length = struct.pack("<Q", len(data))
        self._file.append(
            length
            + struct.pack("<I", masked_crc32c(length))
            + data
            + struct.pack("<I", masked_crc32c(data))
        )


def _field_of(value: Any) -> tuple[str, str]:
    """Returns where the protocol keeps a setting, and what it calls its type."""
    if isinstance(value, bool):
        return "bool_value", "DATA_TYPE_BOOL"
    if isinstance(value, int | float):
        return "number_value", "DATA_TYPE_FLOAT64"
    return "string_value", "DATA_TYPE_STRING"


TIME_FIELDS = ("time", "elapsed", "seconds", "minutes", "target_tokens_per_second")
"""Fields of records that depend on the clock; all others are the same bit for bit in a
run that was stopped and resumed."""

_COMPARED = ["eval/bleu", "eval/perplexity", "eval/loss"]


def read_metrics(path: Path) -> Iterator[Record]:
    """Yields the records of a metrics.jsonl, but for lines that a crash has cut.

    Raises:
      DataError: it is a directory, a pipe or a device.
    """
    if not path.exists():
        return
    require_file(path, mend="Move it away.")
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(record, dict) and {"step", "kind"} <= record.keys():
                yield record


class MetricsFile:
    """metrics.jsonl: one JSON object a line, each with `step` and `kind`.

    Args:
      path: the file; made if it is not there.
      step: the step the run stands at; records after it are cut, since the steps
        they speak of are run again.
    """

    def __init__(self, path: Path, *, step: int):
        kept = [
            record
            for record in read_metrics(path)
            # A run that goes on has not had its end yet.
            if record["step"] <= step and record["kind"] != "final"
        ]
        atomic_write(path, "".join(map(_line, kept)))
        self.records = len(kept)
        self._file = RetryingAppendFile(path)

    def append(self, record: Record) -> None:
        """Writes one record, at once.

        Raises:
          OSError: that is impossible now; it comes before the next one then.
        """
        self._file.append(_line(record).encode())

    def close(self) -> None:
        """Closes the file.

        Raises:
          OSError: the last records are lost.
        """
        self._file.close()


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


class MetricsWriter:
    """Writes what programs read: metrics.jsonl and TensorBoard's event files.

    A disk that is full, or fails, costs records and not the run.

    Args:
      step: the step the run stands at.
      say: told when something cannot be written, and when it can again.
      timestamps: gives each record its time.
      settings: the configuration, for TensorBoard's page "HParams".
    """

    def __init__(
        self,
        workdir: Path,
        *,
        step: int,
        say: Callable[[str], None],
        timestamps: Timestamps | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        self._timestamps = timestamps or Timestamps()
        self._metrics = MetricsFile(workdir / "metrics.jsonl", step=step)
        self._events = EventFile(workdir, step=step)
        self._say = say
        self._failing: set[str] = set()
        if settings:
            write_settings = self._events.append_settings
            self.attempt("The event file", write_settings, settings, _COMPARED)

    def write(self, record: Record) -> None:
        """Records metrics in metrics.jsonl, with the time, and for TensorBoard."""
        figures = {
            f"{record['kind']}/{name}": value
            for name, value in record.items()
            if isinstance(value, int | float) and name != "step"
        }
        record = {**record, **self._timestamps.fields()}
        self.attempt("metrics.jsonl", self._metrics.append, record)
        self.attempt("The event file", self._events.append, record["step"], figures)

    def write_samples(self, step: int, samples: str) -> None:
        """Shows sample translations in TensorBoard, on the page "Text"."""
        write = self._events.append_text
        self.attempt("The event file", write, step, "samples", samples)

    def attempt(self, what: str, write: Callable[..., None], *args: Any) -> None:
        """Writes something that the run can do without.

        Args:
          *args: for `write`.
        """
        try:
            write(*args)
        except OSError as error:
            if what not in self._failing:
                self._failing.add(what)
                self._say(
                    f"WARNING: {what} cannot be written: {error.strerror}. Training "
                    "continues. Free disk space or fix permissions."
                )
        else:
            if what in self._failing:
                self._failing.remove(what)
                self._say(f"{what} is written again.")

    def write_final(self, progress: RunProgress) -> None:
        """Records the end of a complete run."""
        fields = progress.to_dict()
        kept = ("best_bleu", "minutes")
        self.write(
            {
                "step": progress.step,
                "kind": "final",
                "epoch": progress.position.epoch,
                **{name: fields[name] for name in kept if name in fields},
            }
        )

    def close(self) -> None:
        """Writes out what is still held back."""
        self.attempt("metrics.jsonl", self._metrics.close)
        self.attempt("The event file", self._events.close)


class NullMetricsWriter:
    """Writes nothing: of several processes only the first one reports."""

    def write(self, record: Record) -> None:
        """Leaves the figures to the first process."""

    def write_samples(self, step: int, samples: str) -> None:
        """Leaves the samples to the first process."""

    def attempt(self, what: str, write: Callable[..., None], *args: Any) -> None:
        """Leaves everything else to the first process, too."""

    def write_final(self, progress: RunProgress) -> None:
        """Leaves the end of the run to the first process."""

    def close(self) -> None:
        """Has nothing to write out."""
