"""Marian's training as a process that is stopped between rounds, and its log.

Marian has no call for a single step: it trains until it is done. Its process is stopped
by a signal at the end of a round, and continued at the beginning of the next. The log
has a line for each update, with its target tokens: labels, each eos counted, without
padding. Time is taken from line to line, and the update in which the process was
stopped is left out, so that only whole updates are timed.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from step_figures import peak_resident_megabytes

_UPDATE = re.compile(
    r" : Up\. (?P<number>\d+) : .*"
    r" @ (?P<tokens>[\d,]+) after [\d,]+ : .* : (?P<rate>[\d.]+) words/s"
)
_READY = "Training started"
_KEPT_LINES = 20


class Update(NamedTuple):
    """What a line of the log tells of an update.

    Attributes:
      number: of the update, from 1.
      tokens: target tokens, eos counted, without padding.
      rate: Marian's own figure, target tokens a second since the line before.
    """

    number: int
    tokens: int
    rate: float


def parse_update(line: str) -> Update | None:
    """Reads a line of the log; None if it tells of something else.

    Example:
      >>> parse_update(
      ...     "[2026-11-23 09:53:27] Ep. 1 : Up. 2 : Sen. 256 : Cost 9.30387592 * 2,048"
      ...     " @ 2,048 after 4,096 : Time 3.05s : 672.18 words/s : gNorm 2.4553"
      ... )
      Update(number=2, tokens=2048, rate=672.18)
    """
    found = _UPDATE.search(line)
    if not found:
        return None
    tokens = int(found["tokens"].replace(",", ""))
    return Update(int(found["number"]), tokens, float(found["rate"]))


class MarianTraining:
    """A process of `pymarian train`, which computes only while it is asked to.

    Args:
      options: its flags, besides those of the log and of saving.

    Attributes:
      rates: Marian's own figure of each timed update.
      made: updates so far, the timed ones and the others.

    Raises:
      ValueError: it ended before its first update; the message has its last lines.
    """

    def __init__(self, options: Sequence[str]):
        self.rates: list[float] = []
        self.made = 0
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)
        # The log of each update costs less than a thousandth of one.
        log = ("--disp-freq=1u", "--disp-label-counts=true", "--save-freq=0u")
        self._unread, (self._log, write_end) = b"", os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pymarian", "train", *log, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=write_end,
        )
        os.close(write_end)
        atexit.register(self.close)
        while _READY not in self._line():
            pass
        self._stop()

    def train(
        self, *, updates: int | None = None, seconds: float | None = None
    ) -> tuple[float, int]:
        """Trains for a while, from where it stopped.

        Args:
          updates: how many are timed.
          seconds: after which the update under way is the last, instead.

        Returns:
          The seconds of the timed updates, and their target tokens.
        """
        self._process.send_signal(signal.SIGCONT)
        if self.made:
            self._next_update()
        began, tokens, timed, passed = time.perf_counter(), 0, 0, 0.0
        while timed < updates if updates is not None else passed < (seconds or 0.0):
            update = self._next_update()
            passed = time.perf_counter() - began
            timed, tokens = timed + 1, tokens + update.tokens
            self.rates.append(update.rate)
        self._stop()
        return passed, tokens

    def peak_megabytes(self) -> float:
        """Returns the most memory that the process has held so far."""
        return peak_resident_megabytes(self._process.pid)

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()

    def _stop(self) -> None:
        """Stops the process, and reads what it wrote meanwhile."""
        self._process.send_signal(signal.SIGSTOP)
        waits = os.WSTOPPED | os.WEXITED | os.WNOWAIT
        os.waitid(os.P_PID, self._process.pid, waits)
        while select.select([self._log], [], [], 0)[0] and self._read():
            pass
        while b"\n" in self._unread:
            self._count(self._line())

    def _next_update(self) -> Update:
        while (update := self._count(self._line())) is None:
            pass
        return update

    def _count(self, line: str) -> Update | None:
        update = parse_update(line)
        if update:
            self.made = update.number
        return update

    def _line(self) -> str:
        while b"\n" not in self._unread:
            if not self._read():
                raise ValueError(
                    f"Marian ended with code {self._process.wait()}; the end of its "
                    "log:\n" + "\n".join(self._last)
                )
        line, _, self._unread = self._unread.partition(b"\n")
        self._last.append(line.decode(errors="replace"))
        return self._last[-1]

    def _read(self) -> bool:
        more = os.read(self._log, 65536)
        self._unread += more
        return bool(more)
