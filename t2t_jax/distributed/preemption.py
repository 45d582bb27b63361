"""How several processes stop after the same step, whichever of them got a signal.

JAX has a service for that. It learns from its own handler of SIGTERM, installed from C,
that a process is to stop, and has no other way to be told; with that handler in place
Python's would never run, and a second signal could not end the process. So Python keeps
its handlers, and passes the first signal on to JAX's.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

# More than `struct sigaction` takes on any system.
_BYTES = 512


class PreemptionSync(NamedTuple):
    """How processes agree on the step after which they stop.

    Attributes:
      reached: to be called at each step with its number: whether it is the one, some
        time after any process has given notice.
      give: tells all processes that this one has been asked to stop.
    """

    should_stop: Callable[[int], bool]
    give: Callable[[], None]


@contextmanager
def preemption_notice() -> Iterator[PreemptionSync]:
    """Opens JAX's service, which catches nothing by itself.

    To be entered by every process that has joined others, in its main thread.

    Yields:
      What is asked at each step whether to stop, and told that a signal came.
    """
    import jax
    from jax._src import distributed
    from jax.experimental import multihost_utils

    jax.config.update("jax_enable_preemption_service", True)
    # What `initialize` would have called, but SIGTERM would have had no effect from
    # there on, while text is prepared and the step is compiled.
    state = distributed.global_state
    before = signal.getsignal(signal.SIGTERM)
    state.initialize_preemption_sync_manager()
    action = SignalAction.of(signal.SIGTERM)
    signal.signal(signal.SIGTERM, before)
    try:
        yield PreemptionSync(
            multihost_utils.reached_preemption_sync_point, action.deliver
        )
    finally:
        if state.preemption_sync_manager is not None:
            state.preemption_sync_manager.shutdown()
            state.preemption_sync_manager = None
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class SignalAction:
    """What a signal did when this was made.

    Attributes:
      number: of the signal.
      action: the system's `struct sigaction`.
    """

    number: int
    action: ctypes.Array[ctypes.c_char]

    @classmethod
    def of(cls, number: int) -> SignalAction:
        """Reads what a signal does now, whoever has decided that."""
        action = ctypes.create_string_buffer(_BYTES)
        _sigaction(number, None, action)
        return cls(number, action)

    def deliver(self) -> None:
        """Sends the signal to this process, for this action alone; main thread only."""
        now = ctypes.create_string_buffer(_BYTES)
        _sigaction(self.number, self.action, now)
        try:
            signal.raise_signal(self.number)
        finally:
            _sigaction(self.number, now, None)


def _sigaction(
    number: int,
    new: ctypes.Array[ctypes.c_char] | None,
    old: ctypes.Array[ctypes.c_char] | None,
) -> None:
    if ctypes.CDLL(None, use_errno=True).sigaction(number, new, old):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
