"""Loads the same checkpoints on every process.

During training, or on a lagging network file system, processes may see different
checkpoints. Process 0 resolves the steps and broadcasts them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.checkpointing.step_dirs import is_safetensors_dir
from t2t_jax.cli.flags.translation import EvaluateOptions, SearchOptions
from t2t_jax.devices.distributed.processes import Processes, broadcast_from_first
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.files import SHARED_FS_TIMEOUT, wait_until_visible
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.run.inference.model import TranslationModel


def require_run_for_last(options: EvaluateOptions) -> None:
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
    options: SearchOptions, *, checkpoint: str, decoding: DecodingConfig | None
) -> TranslationModel:
    """Loads one checkpoint of the workdir, and the models of the ensemble.

    Collective: call on every process.

    Args:
      options: with `workdir` and `ensemble`.
      checkpoint: `best`, `last` or a step, as process 0 resolves it.
      decoding: None means as the run was configured.

    Raises:
      UserError: as `inference.load.load`; or this process does not see the checkpoint.
    """
    from t2t_jax.run.inference.load import load, resolve_checkpoint

    processes = options.processes

    def resolve(number: int, directory: Path, which: str) -> tuple[Path, str | int]:
        if processes.count == 1:
            return directory, which
        (step,) = shared_steps(
            processes,
            Workdir(directory),
            lambda: [resolve_checkpoint(directory, checkpoint=which)],
            name=f"model {number}",
        )
        return directory, step

    path, step = resolve(0, options.workdir.path, checkpoint)
    others = [
        resolve(n, Path(folder), "best") for n, folder in enumerate(options.ensemble, 1)
    ]
    return load(path, checkpoint=step, decoding=decoding, ensemble=others)


def load_mean(
    options: EvaluateOptions, *, decoding: DecodingConfig | None
) -> TranslationModel:
    """Averages checkpoints of a run in memory. Collective: call on every process.

    Args:
      options: with `workdir`, `last` and `force`.
      decoding: None means as the run was configured.

    Raises:
      UserError: as `inference.average.load_average`; or this process does not see the
        checkpoints.
    """
    from t2t_jax.run.inference.average import load_average, select_checkpoints

    workdir, force = options.workdir, options.force
    steps = shared_steps(
        options.processes,
        workdir,
        lambda: select_checkpoints(workdir, last=options.last, force=force).steps,
    )
    return load_average(workdir, steps=steps, force=force, decoding=decoding)


def shared_steps(
    processes: Processes,
    workdir: Workdir,
    choose: Callable[[], Iterable[int]],
    *,
    name: str = "the model",
    seconds: float = SHARED_FS_TIMEOUT,
) -> tuple[int, ...]:
    """Returns the checkpoints that process 0 chooses, once this process sees them.

    Collective: call on every process.

    Args:
      choose: called on process 0.
      name: of the model; unique in a run.
      seconds: timeout until the file system of this process shows the checkpoints.

    Raises:
      InputMissingError: they do not appear.
    """
    steps = tuple(choose()) if processes.is_first else ()
    sent = broadcast_from_first(processes, f"steps of {name}", json.dumps(steps))
    steps = tuple(json.loads(sent))
    # Checkpoints are renamed into place: an existing directory is complete.
    paths = [workdir.checkpoints / str(step) for step in steps]
    if processes.is_first or wait_until_visible(
        lambda: is_safetensors_dir(workdir.path) or all(p.is_dir() for p in paths),
        seconds=seconds,
    ):
        return steps
    path = next((path for path in paths if not path.is_dir()), paths[0])
    raise InputMissingError(
        f"Process 0 uses step {path.name}, but process {processes.index} does not see "
        f"{path}. --workdir must be on a file system that all processes share. Choose "
        "another."
    )
