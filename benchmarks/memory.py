"""How much memory a program and the processes that it starts take at most."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SECONDS = 0.1


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Watches this process and all that it starts, ten times a second; on Linux.

    Memory that processes share is counted once, in proportional parts. Files that are
    mapped count as far as they have been touched, though they could be dropped.

    Yields:
      the most that was seen so far, of 10^6 bytes, as the only item.
    """
    done, most = threading.Event(), [0.0]

    def watch() -> None:
        while True:
            most[0] = max(most[0], _of_tree(Path("/proc/self")) / 1000)
            if done.wait(_SECONDS):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


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
