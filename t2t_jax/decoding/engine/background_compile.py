"""Compiling what is needed next, while what is there already runs."""

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
    """Compiles for the shapes of batches to come, one after the other, in a thread.

    To be used in a `with` statement around the work on the batches. What this process
    has compiled once is not compiled again. The first shape is left to whoever needs
    it now, in `compiling`.

    Args:
      shapes: those of the batches, in their order.
      likewise: all else that the programs depend on.
    """

    def __init__(
        self,
        make: Callable[[Shape], object],
        shapes: Iterable[Shape],
        *,
        likewise: Hashable,
    ):
        self._likewise = likewise
        later = [
            shape
            for shape in list(dict.fromkeys(shapes))[1:]
            if (likewise, shape) not in _compiled
        ]
        self._thread = ThreadPoolExecutor(1)  # It starts with its first work.
        self._making: dict[Shape, Future[object]] = {
            shape: self._thread.submit(self._make, make, shape) for shape in later
        }

    def wait(self, shape: Shape) -> None:
        """Waits until a shape has its programs, if they are being made.

        What went wrong with them is only noted: it will again where they are used, and
        there somebody can be told.

        Args:
          shape: of the batch that comes now.
        """
        future = self._making.pop(shape, None)
        if future is None or future.cancel():  # Not begun yet: do it now, oneself.
            return
        if error := future.exception():
            _LOGGER.debug("Compiling ahead for %s: %r", shape, error)

    @contextmanager
    def compiling(self, shape: Shape) -> Iterator[None]:
        """Waits for a shape's programs; what is done then has made them for sure."""
        self.wait(shape)
        yield
        _compiled.add((self._likewise, shape))

    def is_compiled(self, shape: Shape) -> bool:
        """Tells whether a shape has its programs."""
        return (self._likewise, shape) in _compiled

    def _make(self, make: Callable[[Shape], object], shape: Shape) -> None:
        make(shape)
        _compiled.add((self._likewise, shape))

    def __enter__(self) -> BackgroundCompiler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
