"""Detects failed and unresponsive processes, and ends all with the same exit code.

Each process publishes a heartbeat every second or so and polls for notices. A process
that fails publishes a notice and waits until the others have read it. With JAX alone
the others would wait for it, or abort with a message about themselves.
"""

from __future__ import annotations

import faulthandler
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from t2t_jax.devices.distributed.signals import hard_exit, write_stderr
from t2t_jax.errors import UnavailableError

_FAILED, _STOP = "failed", "stop"
_NOTICES = "t2t_jax/notices/"
_HEARTBEATS = "t2t_jax/alive/"
_MAX_FAILED_POLLS = 3


class Failure(NamedTuple):
    """Why a process ends, and all others with it.

    Attributes:
      rank: of the failed process.
      code: the exit code of all processes.
      reason: one line.
      stuck: whether the others print the stacks of their threads.
    """

    rank: int
    code: int
    reason: str
    stuck: bool = False


class FailureMonitor:
    """Publishes heartbeats of this process and polls the notices of the others.

    Args:
      client: of JAX's coordinator.
      count: of processes; the more there are, the longer is the polling period.
      before_exit: called, in another thread than the main one, before this process
        ends for the failure of another.

    Attributes:
      stop_was_broadcast: whether some process has requested a stop.
    """

    def __init__(
        self, client: Any, *, rank: int, count: int, before_exit: Callable[[], None]
    ):
        self._client, self._rank, self._before_exit = client, rank, before_exit
        self._period = 1.0 + count / 64
        self._closed = threading.Event()
        self._ending = threading.Lock()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.stop_was_broadcast = False

    def start(self) -> None:
        """Starts the thread that publishes and polls."""
        self._thread.start()

    def close(self) -> None:
        """Stops the thread."""
        self._closed.set()
        self._thread.join()

    def broadcast_stop(self) -> None:
        """Requests all processes to stop."""
        self.stop_was_broadcast = True
        self._publish(_STOP, "")

    def abort_all(self, code: int, reason: str, *, stuck: bool = False) -> NoReturn:
        """Ends this process, and the others as soon as they have read the notice.

        Only the first failure is published: later ones may be its consequences.

        Args:
          reason: only its first line is published.
        """
        self._ending.acquire()  # Never released: the process ends.
        line = (reason.strip() or "?").splitlines()[0]
        self._publish(_FAILED, json.dumps(Failure(self._rank, code, line, stuck)))
        self._exit_after_others(code)

    def unresponsive_ranks(self) -> list[int]:
        """Waits some periods, and returns the ranks without a heartbeat meanwhile."""
        try:
            before = self._client.key_value_dir_get(_HEARTBEATS)
            time.sleep(5 * self._period)
            after = dict(self._client.key_value_dir_get(_HEARTBEATS))
        except RuntimeError:  # Process 0, the host of the store, has ended.
            return [0]
        keys = [key for key, beat in before if after.get(key) == beat]
        return sorted({int(key.rpartition("/")[2]) for key in keys} - {self._rank})

    def _publish(self, name: str, text: str) -> None:
        with suppress(RuntimeError):  # Published before, or the coordinator has ended.
            self._client.key_value_set(f"{_NOTICES}{name}", text)

    def _poll(self) -> None:
        beats = failed_polls = 0
        while not self._closed.wait(self._period):
            beats += 1
            try:
                key, beat = f"{_HEARTBEATS}{self._rank}", str(beats)
                self._client.key_value_set(key, beat, allow_overwrite=True)
                notices = dict(self._client.key_value_dir_get(_NOTICES))
                failed_polls = 0
            except RuntimeError:
                failed_polls += 1
                if failed_polls == _MAX_FAILED_POLLS:
                    code = UnavailableError.exit_code
                    self._end(code, "process 0 cannot be reached.")
                continue
            self.stop_was_broadcast |= f"{_NOTICES}{_STOP}" in notices
            failure = notices.get(f"{_NOTICES}{_FAILED}")
            if failure is not None and not self._ending.locked():
                self._handle(Failure(*json.loads(failure)))

    def _handle(self, failure: Failure) -> None:
        """Ends this process after the failure of another one."""
        rank, code, reason, stuck = failure
        if rank == self._rank:
            return
        if stuck:
            faulthandler.dump_traceback(all_threads=True)
        self._end(code, f"process {rank} has failed (exit code {code}): {reason}")

    def _end(self, code: int, reason: str) -> None:
        if self._closed.is_set():
            return
        self._ending.acquire()
        write_stderr(f"[rank {self._rank}] error: {reason}")
        with suppress(Exception):  # It must end in any case.
            self._before_exit()
        if self._rank == 0:
            self._exit_after_others(code)
        hard_exit(code)

    def _exit_after_others(self, code: int) -> NoReturn:
        """Exits when the others have read the notice; process 0, its host, last."""
        time.sleep((2.5 if self._rank else 4) * self._period)
        hard_exit(code)
