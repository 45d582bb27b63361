"""Writes machine-readable metrics: metrics.jsonl, and TensorBoard's event files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t2t_jax.files import require_file, write_whole
from t2t_jax.training.event_file import EventFile
from t2t_jax.training.growing_file import GrowingFile
from t2t_jax.training.progress import Progress, Record
from t2t_jax.training.timestamps import Timestamps

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
        write_whole(path, "".join(map(_line, kept)))
        self.records = len(kept)
        self._file = GrowingFile(path)

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


class Reporter:
    """Writes what programs read: metrics.jsonl and TensorBoard's event files.

    A disk that is full, or fails, costs records and not the run.

    Args:
      workdir: where both go.
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
          what: the name of it.
          write: does it.
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

    def write_final(self, progress: Progress) -> None:
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


class NoReporter:
    """Writes nothing: of several processes only the first one reports."""

    def write(self, record: Record) -> None:
        """Leaves the figures to the first process."""

    def write_samples(self, step: int, samples: str) -> None:
        """Leaves the samples to the first process."""

    def attempt(self, what: str, write: Callable[..., None], *args: Any) -> None:
        """Leaves everything else to the first process, too."""

    def write_final(self, progress: Progress) -> None:
        """Leaves the end of the run to the first process."""

    def close(self) -> None:
        """Has nothing to write out."""
