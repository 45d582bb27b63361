"""What a process learns of the others while it works: who has failed, who is gone.

Each process shows every second or so that it lives, and looks whether another has left
a notice. A process that fails leaves one and waits until it has been read, so that all
end with its exit code and its reason. JAX alone would let them wait for one another, or
abort them with a message about itself.
"""

from __future__ import annotations

import faulthandler
import json
import threading
import time
from typing import Any, NamedTuple, NoReturn

from t2t_jax.distributed.rendezvous import hard_exit
from t2t_jax.distributed.signal_watcher import write_stderr
from t2t_jax.errors import UnavailableError

_FAILED, _STOP = "failed", "stop"
_FOLDER = "t2t_jax/notices/"
_ALIVE = "t2t_jax/alive/"
_UNREACHABLE = 3


class Failure(NamedTuple):
    """Why a process ends, and all others with it.

    Attributes:
      rank: of the process.
      code: its exit code, and so that of all.
      reason: one line.
      stuck: whether each process is to show what its threads are doing.
    """

    rank: int
    code: int
    reason: str
    stuck: bool = False


class FailureMonitor:
    """Shows that this process lives, and reads what the others have to say.

    Args:
      client: JAX's connection to its coordinator, or what does as it does.
      count: of all processes; the more there are the less often they ask.

    Attributes:
      stop_given: whether some process has been asked to stop.
    """

    def __init__(self, client: Any, *, rank: int, count: int):
        self._client, self._rank = client, rank
        self._period = 1.0 + count / 64
        self._over = threading.Event()
        self._ending = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.stop_given = False

    def start(self) -> None:
        """Begins to look and to show."""
        self._thread.start()

    def close(self) -> None:
        """Neither looks nor shows any more."""
        self._over.set()
        self._thread.join()

    def broadcast_stop(self) -> None:
        """Tells all processes that one of them has been asked to stop."""
        self.stop_given = True
        self._tell(_STOP, "")

    def abort_all(self, code: int, reason: str, *, stuck: bool = False) -> NoReturn:
        """Ends this process, and all others as soon as they have read why.

        What is told is the first failure: a later one may only have come of it.

        Args:
          reason: what has happened; its first line is told.
        """
        self._ending.acquire()  # Never given back: the first to fail ends the process.
        line = (reason.strip() or "?").splitlines()[0]
        self._tell(_FAILED, json.dumps(Failure(self._rank, code, line, stuck)))
        self._end_last(code)

    def unresponsive_ranks(self) -> list[int]:
        """Waits a moment, and returns the ranks that showed no life meanwhile."""
        try:
            before = self._client.key_value_dir_get(_ALIVE)
            time.sleep(5 * self._period)
            beats = dict(self._client.key_value_dir_get(_ALIVE))
        except RuntimeError:  # Process 0 has gone, which keeps the beats.
            return [0]
        keys = [key for key, beat in before if beats.get(key) == beat]
        ranks = {int(key.rpartition("/")[2]) for key in keys}
        return sorted(ranks - {self._rank})

    def _tell(self, name: str, text: str) -> None:
        try:
            self._client.key_value_set(f"{_FOLDER}{name}", text)
        except RuntimeError:  # Told before, by the first; or the coordinator has gone.
            return

    def _watch(self) -> None:
        beats = unreachable = 0
        while not self._over.wait(self._period):
            beats += 1
            try:
                self._client.key_value_set(
                    f"{_ALIVE}{self._rank}", str(beats), allow_overwrite=True
                )
                told = dict(self._client.key_value_dir_get(_FOLDER))
                unreachable = 0
            except RuntimeError:
                unreachable += 1
                if unreachable == _UNREACHABLE:
                    self._end(
                        UnavailableError.exit_code, "process 0 cannot be reached."
                    )
                continue
            self.stop_given |= f"{_FOLDER}{_STOP}" in told
            failed = told.get(f"{_FOLDER}{_FAILED}")
            if failed is not None and not self._ending.locked():
                self._follow(Failure(*json.loads(failed)))

    def _follow(self, failure: Failure) -> None:
        if failure.rank == self._rank:
            return
        if failure.stuck:
            faulthandler.dump_traceback(all_threads=True)
        self._end(
            failure.code,
            f"process {failure.rank} has failed (exit code {failure.code}), and what "
            f"it said last is: {failure.reason}",
        )

    def _end(self, code: int, reason: str) -> None:
        if self._over.is_set():
            return
        self._ending.acquire()
        write_stderr(f"[rank {self._rank}] error: {reason}")
        if self._rank == 0:
            self._end_last(code)
        hard_exit(code)

    def _end_last(self, code: int) -> NoReturn:
        """Ends once the others have read why; process 0, which keeps it, after all."""
        time.sleep((2.5 if self._rank else 4) * self._period)
        hard_exit(code)
