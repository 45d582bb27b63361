import ctypes
import signal

import pytest

from t2t_jax.distributed.preemption import SignalAction


@pytest.fixture
def caught():
    """Counts what a handler installed from C has caught."""
    numbers = []
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(numbers.append)
    libc = ctypes.CDLL(None)
    libc.signal.restype = ctypes.c_void_p
    before = signal.getsignal(signal.SIGUSR2)
    libc.signal(signal.SIGUSR2, handler)
    yield numbers
    signal.signal(signal.SIGUSR2, before)


def test_a_handler_from_c_is_called_when_asked_and_python_keeps_its_own(caught):
    action = SignalAction.of(signal.SIGUSR2)
    ours = []
    signal.signal(signal.SIGUSR2, lambda number, _: ours.append(number))
    signal.raise_signal(signal.SIGUSR2)
    assert (len(ours), len(caught)) == (1, 0)
    action.deliver()
    assert (len(ours), len(caught)) == (1, 1)
    signal.raise_signal(signal.SIGUSR2)
    assert (len(ours), len(caught)) == (2, 1)


def test_an_invalid_signal_number_is_refused():
    with pytest.raises(OSError, match="Invalid argument"):
        SignalAction.of(999)
