"""Work that goes on in a thread, so that the main one can be asked to give it up."""

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
    """Does one thing after the other in a thread of its own.

    Whoever waits for it can be interrupted by a signal at once, which foreign code in
    the main thread would not let through. What has begun then ends unheard.
    """

    def __init__(self) -> None:
        self._tasks: Queue[_Task | None] = Queue()
        self._last: Future[Any] | None = None
        # A daemon: what nobody waits for must not keep the process.
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether what was begun last, and given up since, is still going on."""
        return self._last is not None and not self._last.done()

    def do(self, act: Callable[[], Done]) -> Done:
        """Returns what `act` does, or raises what it has raised.

        Args:
          act: begins when all before it has ended.
        """
        future: Future[Done] = Future()
        self._last = future
        self._tasks.put((act, future))
        while not future.done():
            # In slices: a signal that comes just before a wait does not end it.
            wait([future], timeout=_SLICE_SECONDS)
        return future.result()

    def closed(self, *, seconds: float) -> bool:
        """Takes no more, and tells whether all is at an end so soon.

        Args:
          seconds: how long to wait for what is being done.
        """
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
