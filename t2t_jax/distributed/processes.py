"""The processes of a run: which one this is, and what they tell one another.

The only file that knows JAX's distributed runtime. Its coordinator, a part of process
0, keeps what is told here; JAX uses it so itself, but has no public name for it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from t2t_jax.distributed.cluster_env import detect_cluster
from t2t_jax.distributed.failure_notices import FailureMonitor
from t2t_jax.distributed.rendezvous import hard_exit, initialize_jax_distributed
from t2t_jax.errors import UnavailableError

# Less than SHUTDOWN_SECONDS, which end a process with another code.
_LEAVING_SECONDS = 25
_LEAVING_SECONDS_AFTER_FAILURE = 8
_VERDICT_SECONDS_AFTER_FAILURE = 5
_SLICE_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The processes that run one experiment together.

    A name is used for one text only, in the whole run.

    Attributes:
      index: which this is, from 0.
      count: how many there are.

    Example:
      >>> Processes().is_first
      True
    """

    index: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this one writes what is written once."""
        return self.index == 0

    @property
    def log_prefix(self) -> str:
        """What begins a line that several processes may write; "" for one alone.

        Example:
          >>> Processes(index=1, count=2).mark
          '[rank 1] '
        """
        return f"[rank {self.index}] " if self.count > 1 else ""

    def publish(self, name: str, text: str) -> None:
        """Keeps a text where every process can `receive` it; nothing for one alone."""
        if self.count > 1:
            _client().key_value_set(_key(name), text)

    def receive(self, name: str, *, seconds: float | None = None) -> str:
        """Waits until some process has told a text, and returns it.

        Args:
          name: under which it is told.
          seconds: how long to wait; None means as long as process 0 lives, whose end
            JAX makes the end of this process too.

        Raises:
          UnavailableError: nobody has told it in time.
        """
        deadline = time.monotonic() + (float("inf") if seconds is None else seconds)
        while True:
            try:  # In slices: a signal is handled between them.
                milliseconds = int(1000 * _SLICE_SECONDS)
                text: str = _client().blocking_key_value_get(_key(name), milliseconds)
                return text
            except RuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"Process {self.index} of {self.count} has waited {seconds:g} s "
                    f"for {name!r}, and no process has told it."
                )

    def sync_exit_codes(self, name: str, code: int) -> int:
        """Waits for all processes, and returns the first failure of any of them.

        Args:
          code: the exit code that this process has come to; 0 where all is well.

        Returns:
          The same code on all: 0 if all are well. One that has failed itself does not
          wait long for the others: if they do not come, the process ends by itself.
        """
        if self.count == 1:
            return code
        self.publish(f"{name}/codes/{self.index}", str(code))
        try:
            if self.is_first:
                self.publish(f"{name}/verdict", str(self._verdict(name, code)))
            limit = _VERDICT_SECONDS_AFTER_FAILURE if code else None
            return int(self.receive(f"{name}/verdict", seconds=limit))
        except UnavailableError:
            self.abort_all(code, f"{name}: see above.")

    def _verdict(self, name: str, code: int) -> int:
        """Waits for everybody's code, or for the first that is a failure."""
        while True:
            told = _client().key_value_dir_get(_key(f"{name}/codes/"))
            codes = [code, *(int(other) for _, other in told)]
            if any(codes) or len(told) == self.count:
                return next(filter(None, codes), 0)
            time.sleep(_SLICE_SECONDS / 5)

    def abort_all(self, code: int, reason: str, *, stuck: bool = False) -> NoReturn:
        """Ends this process now, and with its exit code all others.

        Args:
          reason: what the others are told; its first line.
          stuck: whether each of them is to show first what its threads are doing.
        """
        if _notices is None:
            hard_exit(code)
        _notices.abort_all(code, reason, stuck=stuck)

    def broadcast_stop(self) -> None:
        """Tells all others that this one has been asked to stop."""
        if _notices is not None:
            _notices.broadcast_stop()

    @property
    def stop_was_broadcast(self) -> bool:
        """Whether some process has been asked to stop, as far as this one knows."""
        return _notices is not None and _notices.stop_given

    def unresponsive_ranks(self) -> list[int]:
        """Takes some seconds to find the processes that no longer show any life."""
        return [] if _notices is None else _notices.unresponsive_ranks()

    def shutdown(self, code: int) -> None:
        """Parts from the others, all of whom leave; process 0 may be the last.

        Args:
          code: the exit code of this process, which it ends with if the others keep it
            waiting.
        """
        if self.count == 1:
            return
        import jax

        limit = _LEAVING_SECONDS_AFTER_FAILURE if code else _LEAVING_SECONDS
        if self.is_first:
            self.publish("end", str(code))
        else:  # At its end process 0 may have more to do than others.
            self.receive("end")
        if _notices is not None:
            _notices.close()
        timer = threading.Timer(limit, hard_exit, [code])
        timer.daemon = True
        timer.start()
        jax.distributed.shutdown()
        timer.cancel()


SINGLE_PROCESS = Processes()
"""A run of one process."""

_joined = SINGLE_PROCESS
_notices: FailureMonitor | None = None


def current_processes() -> Processes:
    """Returns the processes that this one has joined; `SINGLE_PROCESS` before."""
    return _joined


def initialize(
    *,
    coordinator_address: str = "",
    num_processes: int = 0,
    process_id: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Processes:
    """Joins the other processes, if flags or environment promise any.

    To be called once, in the main thread, before anything else asks JAX for devices.
    One line on stderr says which process this is.

    Args:
      coordinator_address: host:port of process 0; "" where it was not given.
      num_processes: how many there are; 0 where it was not given.
      process_id: which this is; None where it was not given.

    Returns:
      This process's place among all, or `SINGLE_PROCESS`, and then JAX is not even
      imported.

    Raises:
      UserError: flags or environment are incomplete or contradict one another.
      UnavailableError: the coordinator cannot be made. If the others do not come in
        time there is a message, and the process ends with the same code, 69.
    """
    global _joined, _notices
    place = detect_cluster(
        coordinator_address=coordinator_address,
        num_processes=num_processes,
        process_id=process_id,
        environ=environ,
    )
    if place is None:
        return SINGLE_PROCESS
    # Marks what is said from here on.
    _joined = Processes(index=place.index, count=place.count)
    address = initialize_jax_distributed(place, environ=environ)
    import jax

    _notices = FailureMonitor(_client(), rank=place.index, count=place.count)
    _notices.start()
    print(
        f"{_joined.log_prefix}process {place.index} of {place.count}, "
        f"coordinator {address}, "
        f"{jax.local_device_count()} local devices of {jax.device_count()}",
        file=sys.stderr,
        flush=True,
    )
    return _joined


def _client() -> Any:
    """Returns the connection to JAX's coordinator."""
    from jax._src import distributed

    return distributed.global_state.client


def _key(name: str) -> str:
    return f"t2t_jax/{name}"
