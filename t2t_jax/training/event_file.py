"""TensorBoard's event files, written at once.

tensorboardX gives the records their form. Its own writer leaves them to a thread, which
ends when the disk is full, and training then waits for ever for room in its queue.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path
from typing import Any

from t2t_jax.training.growing_file import GrowingFile


class EventFile:
    """Figures over steps, in a new file of a directory.

    Args:
      directory: where TensorBoard looks.
      step: the step the run stands at; what earlier files say of later ones is
        forgotten by TensorBoard, as a resumed run will write it again.
    """

    def __init__(self, directory: Path, *, step: int):
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        place = f"{time.time():.0f}.{socket.gethostname()}.{os.getpid()}"
        self._file = GrowingFile(directory / f"events.out.tfevents.{place}")
        self._append(Event(file_version="brain.Event:2"))
        if step:
            start = SessionLog(status=SessionLog.START)
            self._append(Event(step=step + 1, session_log=start))

    def append(self, step: int, figures: dict[str, float]) -> None:
        """Writes figures by their tags.

        Raises:
          OSError: they cannot be written now; they come before the next ones then.
        """
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=tag, simple_value=value) for tag, value in figures.items()
        ]
        self._append(Event(step=step, summary=Summary(value=values)))

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
