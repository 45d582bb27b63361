"""Selects the checkpoint from which a run resumes.

1. The completely written steps are tried, newest first.
2. A checkpoint is valid if its shapes are those of the model, and the checksums of its
   arrays and small files match.
3. The first valid one is used; those above it are renamed to `corrupt-<step>`.
4. If none is valid, nothing is renamed and the run does not start: `DataError`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
from t2t_jax.checkpointing.reader import CheckpointReader, without_checksums
from t2t_jax.checkpointing.step_dirs import Meta
from t2t_jax.data.files.progress_bar import Log
from t2t_jax.devices.distributed.processes import broadcast_from_first, failing_together
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.files import SHARED_FS_TIMEOUT, wait_until_visible
from t2t_jax.types import PyTree


class Restored(NamedTuple):
    """The newest valid checkpoint.

    Attributes:
      meta: the JSON object, without the checksums.
      corrupt: of each newer checkpoint the error, newest first; for `quarantine`.
    """

    step: int
    items: dict[str, PyTree]
    meta: Meta
    corrupt: list[CorruptCheckpointError]


def restore_latest_valid(
    checkpoints: CheckpointReader, like: Mapping[str, PyTree], *, log: Log
) -> Restored | None:
    """Restores the newest valid checkpoint; changes nothing on disk.

    Collective: call on every process.

    Args:
      like: as for `CheckpointReader.read`.

    Returns:
      None if there is no checkpoint.

    Raises:
      DataError: there are checkpoints, and none of them is valid.
      UserError: a system error prevents reading them, or processes see different steps.
    """
    processes, newest = checkpoints.processes, agreed_latest_step(checkpoints)
    _report_strays(checkpoints, newest, log=log)
    corrupt: list[CorruptCheckpointError] = []
    for step in reversed(checkpoints.steps()):
        items: dict[str, PyTree] = {}  # Those of a corrupt one are released.
        other = checkpoints.corrupt(step, "another process could not read it")
        together = partial(
            failing_together, processes, handled=CorruptCheckpointError, error=other
        )
        try:
            with together(f"read checkpoint {step}"):
                items, meta = checkpoints.read(step, like)
            with together(f"check checkpoint {step}"):
                checkpoints.check(step, items, meta)
                checkpoints.files(step)  # Without them the parameters cannot be used.
        except CorruptCheckpointError as error:
            # Its traceback would keep the arrays while the next ones are read.
            corrupt.append(error.with_traceback(None))
        else:
            return Restored(step, items, without_checksums(meta), corrupt)
    if not corrupt:
        return None
    raise DataError(
        [
            *(f"Checkpoint {one.path} is corrupt: {one.reason}." for one in corrupt),
            f"Cannot resume: {checkpoints.directory} has no valid checkpoint. Nothing "
            "was changed. Restore a checkpoint from a copy, or choose another workdir.",
        ]
    )


def _report_strays(checkpoints: CheckpointReader, newest: int, *, log: Log) -> None:
    """Names what looks like a checkpoint newer than all, or refuses a start beside it.

    Raises:
      DataError: there are remains of another run, and no checkpoint.
    """
    directory, strays = checkpoints.directory, checkpoints.stray_dirs()
    if newest < 0 and strays:
        raise DataError(
            f"Cannot start a run: {directory} has no valid checkpoint, but holds "
            f"{', '.join(strays)}. Restore a checkpoint from a copy, or remove that "
            "folder to start again."
        )
    for name in strays:
        if name.isdecimal() and int(name) > newest:
            log(f"WARNING: Ignoring {directory / name}: not a checkpoint.")


def quarantine(
    checkpoints: CheckpointReader, corrupt: Collection[CorruptCheckpointError], log: Log
) -> None:
    """Renames corrupt checkpoints, so that they are not read again.

    Collective: call on every process. Process 0 renames them; the others wait.
    """
    if not corrupt:
        return
    with failing_together(checkpoints.processes, "rename corrupt checkpoints"):
        for error in corrupt if checkpoints.processes.is_first else ():
            name = checkpoints.quarantine(int(error.path.name)).name
            log(
                f"WARNING: Checkpoint {error.path} is corrupt: {error.reason}. Renamed "
                f"to {name}."
            )
    agreed_latest_step(checkpoints)


def agreed_latest_step(checkpoints: CheckpointReader) -> int:
    """Returns the latest step as process 0 sees it; -1 if there is none.

    Collective: call on every process. The others wait until they see that step too.

    Raises:
      InputMissingError: this process still sees another step after
        `SHARED_FS_TIMEOUT` seconds.
      UserError: another process does.
    """
    processes, latest = checkpoints.processes, max(checkpoints.steps(), default=-1)
    agreed = int(broadcast_from_first(processes, "newest step", str(latest)))
    with failing_together(processes, "see the newest checkpoint"):
        if not wait_until_visible(
            lambda: max(checkpoints.steps(), default=-1) == agreed,
            seconds=SHARED_FS_TIMEOUT,
        ):
            raise InputMissingError(
                f"Process {processes.index} sees step {latest} as the latest in "
                f"{checkpoints.directory}, and process 0 sees {agreed}. All processes "
                "must see the same workdir."
            )
    return agreed
