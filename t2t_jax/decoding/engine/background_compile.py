"""Compiles programs for the next batches while the current one runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]

_LOGGER = logging.getLogger(__name__)
_compiled: set[Hashable] = set()


class BackgroundCompiler:
    """Compiles for the shapes of upcoming batches, one after the other, in a thread.

    A context manager around the work on the batches. What this process has compiled
    is not compiled again. The first shape is left to the caller, in `compiling`.

    Args:
      shapes: those of the batches, in order.
      cache_key: everything else that the programs depend on.
    """

    def __init__(
        self,
        compile_shape: Callable[[Shape], object],
        shapes: Iterable[Shape],
        *,
        cache_key: Hashable,
    ):
        self._cache_key = cache_key
        later = [
            shape
            for shape in list(dict.fromkeys(shapes))[1:]
            if (cache_key, shape) not in _compiled
        ]
        self._thread = ThreadPoolExecutor(1)  # starts with its first task
        self._pending: dict[Shape, Future[object]] = {
            shape: self._thread.submit(self._compile, compile_shape, shape)
            for shape in later
        }

    def wait(self, shape: Shape) -> None:
        """Waits for the programs of a shape, if they are being compiled.

        Errors are only logged: they occur again where the programs are used.
        """
        future = self._pending.pop(shape, None)
        if future is None or future.cancel():  # not started: the caller compiles
            return
        if error := future.exception():
            _LOGGER.debug("Background compilation for %s: %r", shape, error)

    @contextmanager
    def compiling(self, shape: Shape) -> Iterator[None]:
        """Waits for the programs of a shape; marks the shape as compiled afterwards."""
        self.wait(shape)
        yield
        _compiled.add((self._cache_key, shape))

    def is_compiled(self, shape: Shape) -> bool:
        """Returns whether a shape has been compiled."""
        return (self._cache_key, shape) in _compiled

    def _compile(self, compile_shape: Callable[[Shape], object], shape: Shape) -> None:
        compile_shape(shape)
        _compiled.add((self._cache_key, shape))

    def __enter__(self) -> BackgroundCompiler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
