"""The model that all processes use: of the same checkpoints on each.

While a run goes on, or where a network file system lags, each process may see other
checkpoints. So the first one chooses for all.
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


def require_run_of(options: Options) -> None:
    """Checks that there are checkpoints to choose from, if `last` asks for that.

    Raises:
      UserError: the workdir is a model.
    """
    if options.workdir.is_model and options.last:
        raise UserError(
            f"--workdir={options.workdir.path} is a model and no run, and --last="
            f"{options.last} chooses among the checkpoints of a run. Leave --last out, "
            "or name the run."
        )


def load_one(
    options: Options, *, checkpoint: str, decoding: DecodingConfig | None
) -> TranslationModel:
    """Loads one checkpoint, the same on every process.

    Args:
      options: name the workdir, and the models that translate together with it; all
        processes come here.
      checkpoint: `best`, `last` or a step, as the first process sees it.
      decoding: how to search; None means as the run was configured.

    Raises:
      Ended: some process cannot load it. One alone raises what `loading.load` does.
    """
    from t2t_jax.inference.load import load

    processes, workdir = options.processes, options.workdir
    wanted = [(workdir, checkpoint)]
    wanted += [(Workdir(Path(name)), "best") for name in options.ensemble]
    found = []
    for number, (one, which) in enumerate(wanted):
        (step,) = choose_steps(
            processes,
            one,
            functools.partial(_only, one, which),
            name=f"model {number}",
        )
        found.append((one.path, step))
    (path, step), *others = found
    return run_stage(
        processes,
        "loaded",
        lambda: load(path, checkpoint=step, decoding=decoding, ensemble=others),
    )


def _only(workdir: Workdir, checkpoint: str) -> list[int]:
    from t2t_jax.inference.load import resolve_checkpoint

    return [resolve_checkpoint(workdir.path, checkpoint=checkpoint)]


def load_mean(options: Options, *, decoding: DecodingConfig | None) -> TranslationModel:
    """Averages checkpoints of a run in memory, the same on every process.

    Args:
      options: name the workdir, `last` and `force`; all processes come here.
      decoding: how to search; None means as the run was configured.

    Raises:
      Ended: some process cannot. One alone raises what `averages.load_average` does.
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
    """Lets the first process choose checkpoints, and waits until all see them.

    Args:
      processes: all of them come here.
      choose: what the first process does; the others do not.
      name: of what is chosen, another one each time.
      seconds: how long a process waits until its file system shows them.

    Returns:
      The steps, the same on every process.

    Raises:
      Ended: the first could not choose, or another does not see what it has chosen.
        One process alone lets its error pass as it is.
    """
    # In a stage of its own: nobody waits to hear from one that has failed.
    chosen = run_stage(
        processes,
        f"{name} chosen",
        lambda: list(choose()) if processes.is_first else [],
    )
    told = broadcast_from_first(
        processes, f"the checkpoints of {name}", json.dumps(chosen)
    )
    steps: tuple[int, ...] = tuple(json.loads(told))
    # Before any of them loads: they do that in step with one another.
    run_stage(
        processes,
        f"{name} seen",
        lambda: require_visible(workdir, steps, processes=processes, seconds=seconds),
    )
    return steps


def require_visible(
    workdir: Workdir, steps: Sequence[int], *, processes: Processes, seconds: float
) -> None:
    """Checks that this process sees the checkpoints that the first one has chosen.

    Args:
      processes: which this is; the first has seen them.
      seconds: how long to wait for them.

    Raises:
      InputMissingError: they do not appear.
    """
    deadline = time.monotonic() + seconds
    while not processes.is_first:
        # A checkpoint is written beside its place and renamed: it is there whole.
        missing = [s for s in steps if not (workdir.checkpoints / str(s)).is_dir()]
        if not missing or is_safetensors_dir(workdir.path):
            return
        if time.monotonic() >= deadline:
            raise InputMissingError(
                f"Process 0 uses step {missing[0]}, and process {processes.index} does "
                f"not see {workdir.checkpoints / str(missing[0])}. --workdir must be "
                "on a file system that all processes share. Choose another."
            )
        time.sleep(0.2)
