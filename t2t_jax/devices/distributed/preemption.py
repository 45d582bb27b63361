"""Stops several processes after the same step, whichever of them got the signal.

Uses JAX's preemption service, whose only trigger is its own SIGTERM handler, installed
from C. With that handler in place Python's would never run, and a second signal could
not end the process. So Python keeps its handlers, and the first signal is forwarded to
JAX's.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from t2t_jax.devices.distributed.signals import handling
from t2t_jax.jax_internals import (
    start_preemption_service,
    stop_preemption_service,
)

# More than the size of `struct sigaction` on any system.
_SIGACTION_BYTES = 512


class PreemptionSync(NamedTuple):
    """Agreement of all processes on the step after which they stop.

    Attributes:
      should_stop: call it at each step with its number; True at the agreed step, some
        time after `request_stop` on any process.
    """

    should_stop: Callable[[int], bool]
    request_stop: Callable[[], None]


@contextmanager
def preemption_sync() -> Iterator[PreemptionSync]:
    """Starts JAX's preemption service without its signal handler.

    Collective: enter it on every process, in the main thread.
    """
    import jax
    from jax.experimental import multihost_utils

    jax.config.update("jax_enable_preemption_service", True)
    python_handler = signal.getsignal(signal.SIGTERM)
    start_preemption_service()
    jax_action = SignalAction.of(signal.SIGTERM)
    with handling(python_handler, [signal.SIGTERM]):
        try:
            yield PreemptionSync(
                multihost_utils.reached_preemption_sync_point, jax_action.deliver
            )
        finally:
            stop_preemption_service()


@dataclass(frozen=True)
class SignalAction:
    """The action of a signal, as installed when this was made."""

    number: int
    action: ctypes.Array[ctypes.c_char]

    @classmethod
    def of(cls, number: int) -> SignalAction:
        """Returns the current action of a signal."""
        action = ctypes.create_string_buffer(_SIGACTION_BYTES)
        _sigaction(number, None, action)
        return cls(number, action)

    def deliver(self) -> None:
        """Sends the signal to this process with this action; main thread only."""
        current = ctypes.create_string_buffer(_SIGACTION_BYTES)
        _sigaction(self.number, self.action, current)
        try:
            signal.raise_signal(self.number)
        finally:
            _sigaction(self.number, current, None)


def _sigaction(
    number: int,
    new: ctypes.Array[ctypes.c_char] | None,
    old: ctypes.Array[ctypes.c_char] | None,
) -> None:
    if ctypes.CDLL(None, use_errno=True).sigaction(number, new, old):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
