"""Loads the same checkpoints on every process.

During training, or on a lagging network file system, processes may see different
checkpoints. Process 0 resolves the steps and broadcasts them.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.checkpointing.step_dirs import is_safetensors_dir
from t2t_jax.cli.flags.options import Options
from t2t_jax.cli.processes.stages import run_stage
from t2t_jax.distributed.consensus import broadcast_from_first
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.files import SHARED_FS_TIMEOUT
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.inference.model import TranslationModel


def require_run_for_last(options: Options) -> None:
    """Checks that `last` is only used with a run.

    Raises:
      UserError: the workdir is a model.
    """
    if options.workdir.is_model and options.last:
        raise UserError(
            f"--last={options.last} averages checkpoints of a run, but --workdir="
            f"{options.workdir.path} is a model and not a run. Leave --last out, or "
            "pass the run."
        )


def load_one(
    options: Options, *, checkpoint: str, decoding: DecodingConfig | None
) -> TranslationModel:
    """Loads one checkpoint of the workdir, and the models of the ensemble.

    Collective: call on every process.

    Args:
      options: with `workdir` and `ensemble`.
      checkpoint: `best`, `last` or a step, as process 0 resolves it.
      decoding: None means as the run was configured.

    Raises:
      RemoteFailure: a process failed. A single process raises the errors of
        `inference.load.load`.
    """
    from t2t_jax.inference.load import load

    processes, workdir = options.processes, options.workdir
    requested = [(workdir, checkpoint)]
    requested += [(Workdir(Path(name)), "best") for name in options.ensemble]
    resolved = []
    for number, (one, which) in enumerate(requested):
        (step,) = choose_steps(
            processes,
            one,
            functools.partial(_resolve_one, one, which),
            name=f"model {number}",
        )
        resolved.append((one.path, step))
    (path, step), *others = resolved
    return run_stage(
        processes,
        "loaded",
        lambda: load(path, checkpoint=step, decoding=decoding, ensemble=others),
    )


def _resolve_one(workdir: Workdir, checkpoint: str) -> list[int]:
    from t2t_jax.inference.load import resolve_checkpoint

    return [resolve_checkpoint(workdir.path, checkpoint=checkpoint)]


def load_mean(options: Options, *, decoding: DecodingConfig | None) -> TranslationModel:
    """Averages checkpoints of a run in memory. Collective: call on every process.

    Args:
      options: with `workdir`, `last` and `force`.
      decoding: None means as the run was configured.

    Raises:
      RemoteFailure: a process failed. A single process raises the errors of
        `inference.average.load_average`.
    """
    from t2t_jax.inference.average import CheckpointAverager, load_average

    processes, workdir, force = options.processes, options.workdir, options.force

    def choose() -> Sequence[int]:
        averager = CheckpointAverager(workdir)
        return averager.select(last=options.last, force=force).steps

    steps = choose_steps(processes, workdir, choose)
    return run_stage(
        processes,
        "loaded",
        lambda: load_average(workdir, steps=steps, force=force, decoding=decoding),
    )


def choose_steps(
    processes: Processes,
    workdir: Workdir,
    choose: Callable[[], Iterable[int]],
    *,
    name: str = "the model",
    seconds: float = SHARED_FS_TIMEOUT,
) -> tuple[int, ...]:
    """Broadcasts the checkpoints that process 0 chooses, and waits until all see them.

    Collective: call on every process.

    Args:
      choose: called on process 0.
      name: of the stages; unique in a run.
      seconds: timeout until the file system of a process shows the checkpoints.

    Returns:
      The steps, the same on every process.

    Raises:
      RemoteFailure: process 0 could not choose, or another process does not see the
        checkpoints. A single process raises the original error.
    """
    # In a stage of its own, so that no process waits for a failed broadcast.
    chosen = run_stage(
        processes,
        f"{name} chosen",
        lambda: list(choose()) if processes.is_first else [],
    )
    message = broadcast_from_first(
        processes, f"the checkpoints of {name}", json.dumps(chosen)
    )
    steps: tuple[int, ...] = tuple(json.loads(message))
    # Before any process loads: loading is collective.
    run_stage(
        processes,
        f"{name} seen",
        lambda: require_visible(workdir, steps, processes=processes, seconds=seconds),
    )
    return steps


def require_visible(
    workdir: Workdir, steps: Sequence[int], *, processes: Processes, seconds: float
) -> None:
    """Checks that this process sees the checkpoints that process 0 has chosen.

    Args:
      seconds: timeout.

    Raises:
      InputMissingError: they do not appear.
    """
    deadline = time.monotonic() + seconds
    while not processes.is_first:
        # Checkpoints are renamed into place: an existing directory is complete.
        missing = [s for s in steps if not (workdir.checkpoints / str(s)).is_dir()]
        if not missing or is_safetensors_dir(workdir.path):
            return
        if time.monotonic() >= deadline:
            raise InputMissingError(
                f"Process 0 uses step {missing[0]}, but process {processes.index} does "
                f"not see {workdir.checkpoints / str(missing[0])}. --workdir must be "
                "on a file system that all processes share. Choose another."
            )
        time.sleep(0.2)
