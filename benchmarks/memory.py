"""How much memory a program and the processes that it starts take at most."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

_SECONDS = 0.1


class PeakMemory:
    """Watches this process and all that it starts, in a `with` statement; on Linux.

    Memory that processes share is counted once, in proportional parts. Files that are
    mapped count as far as they have been touched, though they could be dropped.

    Attributes:
      megabytes: the most that was seen, of 10^6 bytes; looked at ten times a second.
    """

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.megabytes = max(self.megabytes, _of_tree(Path("/proc/self")) / 1000)
            if self._done.wait(_SECONDS):
                return


def _of_tree(process: Path) -> int:
    """Adds up the kilobytes of a process and of its children."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
        kilobytes = next(int(line.split()[1]) for line in lines if "Pss:" in line)
        threads = list((process / "task").iterdir())
        children = " ".join((task / "children").read_text() for task in threads)
    except (OSError, StopIteration):  # it has just ended
        return 0
    return kilobytes + sum(
        _of_tree(Path("/proc") / child) for child in children.split()
    )
