"""Making the next batches while the accelerator works on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Prefetched(Generic[Item]):
    """An iterator that works ahead in a thread of its own.

    What goes wrong in the thread is raised where the next item is asked for. Closing
    ends the thread; a closed iterator has no more items.

    Args:
      items: what the thread iterates over.
      depth: how many are made ahead.
    """

    def __init__(self, items: Iterator[Item], *, depth: int = 4):
        self._items = items
        self._ready: queue.Queue[tuple[Item] | BaseException] = queue.Queue(depth)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for item in self._items:
                if self._closed.is_set():
                    return
                self._ready.put((item,))
        except BaseException as error:
            self._ready.put(error)
        else:
            self._ready.put(StopIteration())

    def __iter__(self) -> Prefetched[Item]:
        return self

    def __next__(self) -> Item:
        if self._closed.is_set():
            raise StopIteration
        made = self._ready.get()
        if isinstance(made, BaseException):
            self.close()
            raise made
        return made[0]

    def __enter__(self) -> Prefetched[Item]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread, and drops what it has made ahead."""
        self._closed.set()
        while self._thread.is_alive():
            # The thread may be waiting for room to put an item.
            while not self._ready.empty():
                self._ready.get_nowait()
            self._thread.join(timeout=0.01)
