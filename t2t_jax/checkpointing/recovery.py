"""From which checkpoint a run goes on.

1. The steps that were completely written are looked at, the newest first.
2. A checkpoint is good if its shapes are the model's and its checksums are right.
3. The first good one is used; those above it are renamed to `corrupt-<step>` and named.
4. If none is good, nothing is renamed and nothing is begun: `DataError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
from t2t_jax.distributed.consensus import broadcast_from_first
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.files import SHARED_FS_TIMEOUT

State = TypeVar("State")


def restore_latest_valid(
    checkpoints: Checkpoints,
    restore: Callable[[int], State],
    *,
    say: Callable[[str], None],
    processes: Processes = SINGLE_PROCESS,
) -> State | None:
    """Loads the newest good checkpoint, and sets aside the damaged ones above it.

    Args:
      checkpoints: opened for saving, on each process.
      restore: loads a step; it raises `CorruptCheckpointError` on all processes or on
      none.
      say: told what was set aside, and from where the run goes on.

    Returns:
      What `restore` has returned; None if nothing was ever saved here.

    Raises:
      DataError: there are checkpoints, and none of them is good.
      UserError: the machine cannot read them, or another process sees others.
    """
    newest = agreed_latest_step(checkpoints, processes)
    where = checkpoints.directory
    if not newest:
        _require_no_traces(checkpoints)
        return None
    for name in checkpoints.stray_dirs():
        if name.isdecimal() and int(name) > newest:
            say(f"WARNING: {where / name} is no checkpoint, and is passed over.")
    bad: list[CorruptCheckpointError] = []
    for step in reversed(checkpoints.steps()):
        try:
            state = restore(step)
        except CorruptCheckpointError as error:
            bad.append(error)
            continue
        _set_aside(checkpoints, bad, say=say, processes=processes)
        say(f"Going on from step {step:,} in {where.parent}.")
        return state
    raise DataError(
        [
            *(f"Checkpoint {error.path} is damaged: {error.reason}." for error in bad),
            f"{where} must hold a good checkpoint for the run to go on, and holds "
            "none. All were left as they are. Bring one back from a copy, or choose "
            "another workdir.",
        ]
    )


def agreed_latest_step(
    checkpoints: Checkpoints,
    processes: Processes = SINGLE_PROCESS,
    *,
    when: str = "begin",
) -> int:
    """Finds the last step that is saved, the same for all processes; 0 if none is.

    Args:
      processes: that go on together, and so from the step that the first one sees.
      when: at which point of the run this is asked; another one each time.

    Raises:
      InputMissingError: this one sees another last step, and goes on doing so.
    """
    found = max(checkpoints.steps(), default=0)
    newest = int(broadcast_from_first(processes, f"newest step, {when}", str(found)))
    deadline = time.monotonic() + SHARED_FS_TIMEOUT
    while found != newest:
        if time.monotonic() > deadline:
            raise InputMissingError(
                f"Process {processes.index} sees step {found} as the last one in "
                f"{checkpoints.directory}, and process 0 sees {newest}. All "
                "processes must see the same workdir."
            )
        time.sleep(1)
        found = max(checkpoints.steps(), default=0)
    return newest


def _require_no_traces(checkpoints: Checkpoints) -> None:
    """Refuses to begin where a run has been, whatever is left of its checkpoints."""
    traces = checkpoints.stray_dirs()
    if traces:
        raise DataError(
            f"{checkpoints.directory} must hold no checkpoint for a run to begin, or a "
            f"good one for it to go on, and holds {', '.join(traces)}. Bring one back "
            "from a copy, or remove that folder to begin again."
        )


def _set_aside(
    checkpoints: Checkpoints,
    bad: Sequence[CorruptCheckpointError],
    *,
    say: Callable[[str], None],
    processes: Processes,
) -> None:
    """Renames checkpoints that are damaged, so that nobody takes them for good."""
    for error in bad:
        step = int(error.path.name)
        if processes.is_first:
            name = checkpoints.quarantine(step).name
            say(
                f"WARNING: Checkpoint {error.path} is damaged: {error.reason}. It is "
                f"called {name} now."
            )
    if bad:
        agreed_latest_step(checkpoints, processes, when="without the damaged ones")
