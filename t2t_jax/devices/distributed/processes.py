"""The processes of a run: start, ranks, collective decisions, and end."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from t2t_jax import jax_internals
from t2t_jax.devices.distributed.cluster import (
    detect_cluster,
    initialize_jax_distributed,
)
from t2t_jax.devices.distributed.failure_notices import FailureMonitor
from t2t_jax.devices.distributed.signals import hard_exit
from t2t_jax.errors import UserError

# Less than SHUTDOWN_SECONDS, after which JAX ends the process with another code.
_SHUTDOWN_SECONDS = 25
_SHUTDOWN_SECONDS_AFTER_FAILURE = 8


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The processes of a run, as one of them sees them.

    Messages and collective calls have names: the n-th text that is published under a
    name is the n-th one that a process receives under it.

    Attributes:
      index: the rank of this process, from 0.
      count: the number of processes.

    Example:
      >>> Processes().is_first
      True
    """

    index: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is process 0, which writes the files of the run."""
        return self.index == 0

    @property
    def log_prefix(self) -> str:
        """The prefix of this process's log lines; "" for a single process.

        Example:
          >>> Processes(index=1, count=2).log_prefix
          '[rank 1] '
        """
        return f"[rank {self.index}] " if self.count > 1 else ""

    def publish(self, name: str, text: str) -> None:
        """Publishes a text under a name for `receive`; does nothing if single."""
        if self.count > 1:
            jax_internals.publish(self._numbered("published", name), text)

    def receive(self, name: str) -> str:
        """Waits until some process has published a text, and returns it."""
        return jax_internals.receive(self._numbered("received", name))

    def _numbered(self, how: str, name: str) -> str:
        _times[how, self.index, name] += 1
        return f"{name}/{_times[how, self.index, name]}"

    def abort_all(self, code: int, reason: str, *, stuck: bool = False) -> NoReturn:
        """Ends this process now, and all others with the same exit code.

        Args:
          reason: its first line is the message of the others.
          stuck: whether the others print the stacks of their threads.
        """
        if _monitor is None:
            hard_exit(code)
        _monitor.abort_all(code, reason, stuck=stuck)

    def broadcast_stop(self) -> None:
        """Requests all processes to stop."""
        if _monitor is not None:
            _monitor.broadcast_stop()

    @property
    def stop_was_broadcast(self) -> bool:
        """Whether some process has requested a stop."""
        return _monitor is not None and _monitor.stop_was_broadcast

    def unresponsive_ranks(self) -> list[int]:
        """Returns the ranks without a heartbeat; takes some seconds."""
        return [] if _monitor is None else _monitor.unresponsive_ranks()

    def shutdown(self, code: int) -> None:
        """Disconnects from the other processes; process 0 waits for them.

        Collective: call on every process.

        Args:
          code: the exit code of this process, used if the shutdown takes too long.
        """
        if self.count == 1:
            return
        import jax

        limit = _SHUTDOWN_SECONDS_AFTER_FAILURE if code else _SHUTDOWN_SECONDS
        # Process 0 may have more to do at its end.
        broadcast_from_first(self, "end", str(code))
        if _monitor is not None:
            _monitor.close()
        timer = threading.Timer(limit, hard_exit, [code])
        timer.daemon = True
        timer.start()
        jax.distributed.shutdown()
        timer.cancel()


SINGLE_PROCESS = Processes()
"""A run of one process."""

_current = SINGLE_PROCESS
_times: Counter[tuple[str, int, str]] = Counter()
_monitor: FailureMonitor | None = None


def current_processes() -> Processes:
    """Returns the processes after `initialize` or `jax.distributed.initialize`.

    Before, it returns `SINGLE_PROCESS`.
    """
    index, count = jax_internals.rank_and_count()
    if _current.count == 1 < count:
        return Processes(index=index, count=count)
    return _current


def initialize(
    *, before_exit: Callable[[], None] = lambda: None, **flags: Any
) -> Processes:
    """Connects to the other processes if flags or environment configure any.

    Call it once, in the main thread, before JAX is asked for devices. Logs a line on
    stderr. With a single process JAX is not imported.

    Args:
      before_exit: called, in another thread than the main one, before this process
        ends for the failure of another.
      flags: as for `detect_cluster`.

    Raises:
      UserError: flags or environment are incomplete or contradictory.
      UnavailableError: the coordinator cannot be started. If other processes are
        missing, a message is printed and this process exits with the same code, 69.
    """
    global _current, _monitor
    if (info := detect_cluster(**flags)) is None:
        return SINGLE_PROCESS
    _current = Processes(index=info.index, count=info.count)  # Prefixes log lines.
    address = initialize_jax_distributed(info, environ=os.environ)
    import jax

    client, how = jax_internals.client(), {"rank": info.index, "count": info.count}
    _monitor = FailureMonitor(client, before_exit=before_exit, **how)
    _monitor.start()
    devices = f"{jax.local_device_count()} local devices of {jax.device_count()}"
    text = f"process {info.index} of {info.count}, coordinator {address}, {devices}"
    print(_current.log_prefix + text, file=sys.stderr, flush=True)
    return _current


def broadcast_from_first(processes: Processes, name: str, text: str) -> str:
    """Returns the text of process 0 on every process.

    Collective: call on every process.

    Args:
      name: of the call, the same on every process.
      text: used on process 0 only.

    Example:
      >>> broadcast_from_first(Processes(), "is it time at step 100", "yes")
      'yes'
    """
    if not processes.is_first:
        return processes.receive(name)
    processes.publish(name, text)
    return text


def all_reduce_min(processes: Processes, name: str, number: int) -> int:
    """Returns the smallest number of all processes on every process.

    Collective: call on every process.

    Args:
      name: of the call, the same on every process.

    Example:
      >>> all_reduce_min(Processes(), "memory", 5)
      5
    """
    if processes.count == 1:
        return number
    processes.publish(f"{name}/{processes.index}", str(number))
    if processes.is_first:
        names = [f"{name}/{index}" for index in range(processes.count)]
        number = min(int(processes.receive(one)) for one in names)
    return int(broadcast_from_first(processes, name, str(number)))


def barrier(processes: Processes, name: str) -> None:
    """Returns when every process has called it.

    Collective: call on every process.

    Args:
      name: of the call, the same on every process.
    """
    all_reduce_min(processes, name, 0)


@contextmanager
def failing_together(
    processes: Processes,
    what: str,
    *,
    handled: type[Exception] | tuple[()] = (),
    error: UserError | None = None,
) -> Iterator[None]:
    """Raises on every process if the body raises on some.

    Collective: enter it on every process. After `initialize` an error that is not
    `handled` is only raised where it occurs, as it ends all processes.

    Args:
      what: the processes do, a verb, for the message.
      handled: the errors after which the processes go on, together.
      error: that of the others after one that is `handled`.

    Raises:
      UserError: another process has failed.
    """
    try:
        yield
    except Exception as failure:
        outcome = 0 if isinstance(failure, handled) else -1
        go_on = outcome == 0 or _monitor is None
        # Of two failures, that which ends the processes counts.
        if go_on and all_reduce_min(processes, what, outcome) < outcome:
            raise _failed_elsewhere(what) from failure
        raise
    if (worst := all_reduce_min(processes, what, 1)) < 1:
        raise error if error and worst == 0 else _failed_elsewhere(what)


@contextmanager
def finishing(processes: Processes, finish: Callable[[], object]) -> Iterator[None]:
    """Calls `finish` at the end.

    After an exception only a single process does: the others must be notified first,
    and may have failed.
    """
    has_failed = True
    try:
        yield
        has_failed = False
    finally:
        if processes.count == 1 or not has_failed:
            finish()


def _failed_elsewhere(what: str) -> UserError:
    return UserError(f"Another process could not {what}. Its own error says why.")
