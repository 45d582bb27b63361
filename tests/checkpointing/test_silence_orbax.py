"""Unraisable errors of Orbax are suppressed, and all others reported.

Seen to fail: without each of the two conditions of the hook, and with a hook that
suppresses everything; without `silence_orbax`, tests/faults/ sees the pages.
"""

import sys
import types
from pathlib import Path

import orbax.checkpoint as ocp
import pytest

from t2t_jax.checkpointing import diagnosis


@pytest.fixture
def passed_on(monkeypatch):
    """What reaches the hook from before, after two calls of `silence_orbax`."""
    passed_on = []
    monkeypatch.setattr(sys, "unraisablehook", passed_on.append)
    diagnosis.silence_orbax()
    diagnosis.silence_orbax()
    return passed_on


def raise_to_hook(error, left=None):
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


ORBAX = Path(ocp.__file__).parent / "diagnosis.py"


@pytest.mark.parametrize(
    ("error", "path", "is_suppressed"),
    [
        (ValueError("chunk"), ORBAX, True),
        (ValueError("chunk"), "/home/someone/diagnosis.py", False),
        (KeyboardInterrupt("SIGTERM"), ORBAX, False),
    ],
)
def test_only_an_error_in_a_coroutine_of_orbax_is_suppressed(
    passed_on, error, path, is_suppressed
):
    left = coroutine_of(path)
    unraisable = raise_to_hook(error, left)
    left.close()
    assert passed_on == ([] if is_suppressed else [unraisable])
