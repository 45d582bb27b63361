"""TensorBoard's event files, written at once.

tensorboardX gives the records their form. Its own writer leaves them to a thread, which
ends when the disk is full, and training then waits for ever for room in its queue.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_jax.training.growing_file import GrowingFile

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
      directory: where TensorBoard looks.
      step: the step the run stands at; what earlier files say of later ones is
        forgotten by TensorBoard, as a resumed run will write it again.
    """

    def __init__(self, directory: Path, *, step: int):
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._described: set[str] = set()
        place = f"{time.time():.0f}.{socket.gethostname()}.{os.getpid()}"
        self._file = GrowingFile(directory / f"events.out.tfevents.{place}")
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
