"""What Orbax leaves behind when it could not read a checkpoint.

It reads all arrays at once, and ends at the first error. The others' coroutines are
let go of with errors of their own, and TensorStore's threads come back to an event loop
that is closed. Python would print a page of that for each array, after our one line.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any


def silence() -> None:
    """Lets what Orbax has left end unheard, and nothing else.

    From here on, in the whole process: nobody knows when the last of it ends.
    """
    before = sys.unraisablehook
    if not isinstance(before, _Hook):
        sys.unraisablehook = _Hook(before)


class _Hook:
    def __init__(self, before: Callable[[Any], object]):
        self._before = before

    def __call__(self, unraisable: Any) -> None:
        left = _is_coroutine(unraisable.object) or _came_too_late(unraisable)
        # A signal that falls into a coroutine of Orbax is none of its errors.
        if not (left and isinstance(unraisable.exc_value, Exception)):
            self._before(unraisable)


def _is_coroutine(left: object) -> bool:
    return inspect.iscoroutine(left) and _is_of_orbax(left.cr_code.co_filename)


def _came_too_late(unraisable: Any) -> bool:
    """Tells an answer of TensorStore to an event loop that has ended."""
    place: TracebackType | None = unraisable.exc_traceback
    return (
        isinstance(unraisable.exc_value, RuntimeError)
        and str(unraisable.exc_value) == "Event loop is closed"
        and place is not None
        and place.tb_frame.f_code.co_name == "call_soon_threadsafe"
    )


def _is_of_orbax(path: str) -> bool:
    return "/orbax/" in path.replace("\\", "/")
