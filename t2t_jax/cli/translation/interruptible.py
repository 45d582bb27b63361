"""Runs work in a background thread so that Ctrl-C can cancel the wait."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import Queue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

Done = TypeVar("Done")

_SLICE_SECONDS = 0.2

_Task: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]


class InterruptibleWorker:
    """Runs functions one after another in a thread of its own.

    A signal interrupts the waiting main thread at once, which native code in the main
    thread would delay. The result of the interrupted function is discarded.
    """

    def __init__(self) -> None:
        self._tasks: Queue[_Task | None] = Queue()
        self._last: Future[Any] | None = None
        # A daemon, so that an abandoned task does not keep the process alive.
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether a cancelled function is still running."""
        return self._last is not None and not self._last.done()

    def run(self, act: Callable[[], Done]) -> Done:
        """Runs a function after all earlier ones, and returns or raises its result."""
        future: Future[Done] = Future()
        self._last = future
        self._tasks.put((act, future))
        while not future.done():
            # In slices: a signal just before the wait would not interrupt it.
            wait([future], timeout=_SLICE_SECONDS)
        return future.result()

    def close(self, *, seconds: float) -> bool:
        """Stops the thread; returns whether it has ended within `seconds`."""
        self._tasks.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            act, future = task
            try:
                future.set_result(act())
            except Exception as error:
                future.set_exception(error)
