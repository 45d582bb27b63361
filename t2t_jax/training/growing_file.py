"""A file that grows by whole records, although the disk may be full for a while."""

from __future__ import annotations

from pathlib import Path


class GrowingFile:
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
