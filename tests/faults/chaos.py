"""A run that is hurt at a random moment, and what became of it."""

import random
import re
import signal
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.faults import running

# How often each moment is chosen: while it starts, makes steps, saves, evaluates.
MOMENTS = {"starting": 3, "training": 8, "saving": 5, "evaluating": 4}
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
# Seconds after which it is hurt wherever it is.
PATIENCE = 60.0
_BEGINNING = re.compile(r"Resuming from step ([\d,]+) in ")


class Topology(NamedTuple):
    """So many processes with so many devices each.

    Example:
      >>> str(Topology.parse("2x4")), str(Topology.parse("8"))
      ('2x4', '8')
    """

    processes: int
    devices: int

    @classmethod
    def parse(cls, text: str) -> "Topology":
        *processes, devices = map(int, text.split("x"))
        return cls(processes[0] if processes else 1, devices)

    def __str__(self) -> str:
        several = self.processes > 1
        return f"{self.processes}x{self.devices}" if several else str(self.devices)


class Launch(NamedTuple):
    """What became of one start of a run.

    `began` is the step that it went on from, None if it did not come so far;
    `reached` the last step that it told of; `newest` the last one that was saved
    before it; `code` what it ended with.
    """

    topology: Topology
    number: str
    moment: str
    newest: int
    began: int | None
    reached: int
    code: int

    @property
    def is_right(self) -> bool:
        """Whether it went on from the last save, and ended as its signal demands."""
        # Before Python has come to the program, a signal does what it does by default.
        early = (-15,) if self.began is None else ()
        codes = {"SIGKILL": (-9,), "SIGTERM": (75, *early), "": (0,)}
        return self.code in codes[self.number] and self.began in (None, self.newest)

    def __str__(self) -> str:
        began = "nothing yet" if self.began is None else f"from step {self.began:,}"
        what = f"{self.number} while {self.moment}" if self.number else "to the end"
        return (
            f"{self.topology}: {began} to {self.reached:,}, {what}: code {self.code}"
            + ("" if self.is_right else "  WRONG")
        )


class Listener:
    """Reads what a run says on stderr, so that it never has to wait for a reader."""

    def __init__(self, process: running.Process):
        self._process, self._lines = process, []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def said(self) -> str:
        return "".join(self._lines)

    def close(self) -> None:
        """Waits until all of its processes have gone: each of them holds the pipe."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "some of its processes are left"
        self._process.communicate()

    def _read(self) -> None:
        for line in self._process.stderr:
            self._lines.append(line.decode())


def launch(
    argv: list[str],
    workdir: Path,
    *,
    topology: Topology,
    chance: random.Random | None = None,
    signals: tuple[signal.Signals, ...] = SIGNALS,
    moments: dict[str, int] = MOMENTS,
    seconds: float = 3600,
) -> Launch:
    """Starts a run, and hurts it at a random moment; without a chance it may end."""
    newest = _newest(workdir)
    process = running.launch(
        argv, processes=topology.processes, devices=topology.devices, fresh=True
    )
    listener, number, moment = Listener(process), "", ""
    try:
        if chance:
            (moment,) = chance.choices([*moments], [*moments.values()])
            _wait_for(moment, process, listener, workdir, chance)
            number = chance.choice(signals)
            process.send_signal(number)
        code = process.wait(timeout=seconds)
    finally:
        process.kill()
        listener.close()
    if code == 0:  # it was done before it was hurt
        number, moment = "", ""
    return Launch(
        topology=topology,
        number=number and number.name,
        moment=moment,
        newest=newest,
        began=_began(listener.said),
        reached=running.last_step(workdir),
        code=code,
    )


def _wait_for(
    moment: str,
    process: running.Process,
    listener: Listener,
    workdir: Path,
    chance: random.Random,
) -> None:
    """Waits for the moment, and then for a random part of what it lasts."""
    before = running.last_step(workdir)
    folder = workdir / "checkpoints"
    tests = {
        "starting": lambda: True,
        "training": lambda: running.last_step(workdir) not in (0, before),
        "saving": lambda: any(folder.glob("*.orbax-checkpoint-tmp*")),
        "evaluating": lambda: "Evaluating step" in listener.said,
    }
    lasting = {"starting": 8.0, "training": 6.0, "saving": 0.05, "evaluating": 0.5}
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if tests[moment]():
            break
        time.sleep(0.002)
    deadline = time.monotonic() + chance.uniform(0, lasting[moment])
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)


def _newest(workdir: Path) -> int:
    """Finds the last step saved; one that was being replaced will be put back."""
    replaced = (workdir / "checkpoints").glob("replaced-*")
    numbers = [path.name.removeprefix("replaced-") for path in replaced]
    put_back = [int(number) for number in numbers if number.isdecimal()]
    return max([*running.saved(workdir), *put_back], default=0)


def _began(said: str) -> int | None:
    match = _BEGINNING.search(said)
    if match:
        return int(match[1].replace(",", ""))
    return 0 if "Compiling the training step" in said else None


def segments(launches: Iterable[Launch]) -> list[tuple[Topology, int]]:
    """Lists which topology has made the steps up to which one, without what was lost.

    Example:
      >>> one, two = Topology(1, 1), Topology(1, 2)
      >>> def made(topology, began, reached):
      ...     return Launch(topology, "SIGKILL", "saving", began, began, reached, -9)
      >>> segments([made(one, 0, 9), made(two, 5, 8), made(one, 7, 7)])
      [(Topology(processes=1, devices=1), 5), (Topology(processes=1, devices=2), 7)]
    """
    begun = [(one.topology, one.began) for one in launches if one.began is not None]
    ends = [began for _, began in begun[1:]]
    made: list[tuple[Topology, int]] = []
    for (topology, began), until in zip(begun, ends, strict=False):
        if until == began:
            continue
        if made and made[-1][0] == topology:
            made.pop()
        made.append((topology, until))
    return made
