"""What Orbax leaves is not heard, and all else is.

Seen to fail: without each of the two conditions of the hook, and with a hook that lets
nothing through; without `silence_orbax` in `reading.py`, tests/faults/ sees the pages.
"""

import asyncio
import subprocess
import sys
import types
from pathlib import Path

import orbax.checkpoint as ocp
import pytest

from t2t_jax.checkpointing import reader


@pytest.fixture
def heard(monkeypatch):
    """What reaches the hook from before, after two calls of `silence_orbax`."""
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    reader.silence_orbax()
    reader.silence_orbax()
    return heard


def tell(error, left=None):
    """Raises an error, and gives it to the hook as Python does."""
    try:
        raise error
    except BaseException as raised:
        place = raised.__traceback__
    unraisable = types.SimpleNamespace(
        object=left, exc_value=error, exc_traceback=place, exc_type=type(error)
    )
    sys.unraisablehook(unraisable)
    return unraisable


def coroutine_of(path):
    names = {}
    exec(compile("async def read(): pass", str(path), "exec"), names)
    return names["read"]()


def test_a_coroutine_of_orbax_is_not_heard(heard):
    left = coroutine_of(Path(ocp.__file__).parent / "reading.py")
    tell(ValueError("chunk"), left)
    left.close()
    assert heard == []


def test_another_coroutine_is_heard(heard):
    left = coroutine_of("/home/someone/reading.py")
    told = tell(ValueError("chunk"), left)
    left.close()
    assert heard == [told]


def test_a_signal_in_a_coroutine_of_orbax_is_heard(heard):
    left = coroutine_of(Path(ocp.__file__).parent / "reading.py")
    told = tell(KeyboardInterrupt("SIGTERM"), left)
    left.close()
    assert heard == [told]


def test_an_answer_to_a_loop_that_is_closed_is_not_heard(heard):
    loop = asyncio.new_event_loop()
    loop.close()
    try:
        loop.call_soon_threadsafe(print)
    except RuntimeError as error:
        late = error
    # As from a thread of C++, where nothing of Python is around the call.
    place = late.__traceback__.tb_next
    unraisable = types.SimpleNamespace(
        object=None, exc_value=late, exc_traceback=place, exc_type=RuntimeError
    )
    sys.unraisablehook(unraisable)
    assert heard == []


def test_another_error_is_heard(heard):
    assert heard == [tell(RuntimeError("Event loop is closed"))]


def test_python_itself_comes_to_the_hook():
    script = (
        "import sys\n"
        "from t2t_jax.checkpointing import reader as leftovers\n"
        "leftovers.silence()\n"
        "class Left:\n"
        "    def __del__(self): raise ValueError('seven')\n"
        "Left()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "ValueError: seven" in done.stderr
