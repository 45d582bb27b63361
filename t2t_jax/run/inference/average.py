"""Averages several checkpoints of a run into a model.

Paper: §6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_jax.checkpointing.averaging import (
    CheckpointInfo,
    Selection,
    average,
    info_from_meta,
    select,
    sliding_windows,
    spacing_units,
)
from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.distributed.gather import replicate
from t2t_jax.errors import DataError, UserError
from t2t_jax.run.inference.load import abstract_params, load
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.inference.model_dir import check_new_dir, write_model
from t2t_jax.run.inference.provenance import run_facts
from t2t_jax.run.workdir import Workdir


def select_checkpoints(
    workdir: Workdir, *, last: int = 0, steps: Sequence[int] = (), force: bool = False
) -> Selection:
    """Selects the checkpoints of one average.

    Args:
      last: number of newest periodic checkpoints; 0 means `checkpoint.keep`.
      steps: the steps to average instead, in any order.
      force: accepts checkpoints that are unevenly spaced, not periodic, or given
        twice, which doubles their weight.

    Raises:
      UserError: the directory is not a run.
      DataError: there are not enough checkpoints, or not those, or they have faults
        and `force` is not set.
    """
    if steps:
        infos, config = _infos(workdir, steps), workdir.read_config().checkpoint
        selection = select(infos, spacing_units(config))
    else:
        selection = select_windows(workdir, last=last)[-1]
    if not force:
        selection.check_even()
    return selection


def select_windows(workdir: Workdir, *, last: int = 0) -> list[Selection]:
    """Lists every `last` consecutive periodic checkpoints, also with faults.

    Raises:
      UserError: the directory is not a run.
      DataError: there are not enough checkpoints.
    """
    infos, config = _infos(workdir), workdir.read_config().checkpoint
    windows = sliding_windows(infos, spacing_units(config), last=last or config.keep)
    if not windows:
        held = sum(info.is_periodic for info in infos)
        asked = f"--last={last}" if last else f"checkpoint.keep={config.keep}"
        advice = f"Set --last to a number from 1 to {held}"
        if not held:
            advice = "Train with periodic checkpoints"
        raise DataError(
            f"{asked} periodic checkpoints are to be averaged, and "
            f"{workdir.checkpoints} holds {held}. {advice}; config.checkpoint sets how "
            "many a run saves and keeps."
        )
    return windows


def _infos(workdir: Workdir, steps: Sequence[int] = ()) -> list[CheckpointInfo]:
    """Reads the positions of checkpoints of a run; of all without `steps`."""
    workdir.require_run()
    checkpoints = CheckpointReader(workdir.checkpoints)
    if not set(steps) <= set(saved := checkpoints.steps()):
        asked, held = ",".join(map(str, steps)), ", ".join(map(str, saved)) or "none"
        raise DataError(
            f"--average_steps={asked} must be steps of {workdir.checkpoints}, which "
            f"holds {held}."
        )
    return [info_from_meta(checkpoints.meta(step)) for step in steps or saved]


def average_model(
    workdir: Workdir,
    selection: Selection,
    *,
    trained: bool = False,
    decoding: DecodingConfig | None = None,
) -> TranslationModel:
    """Averages checkpoints of a run in memory, on each device of this process.

    Args:
      selection: from `select_checkpoints`; a step that is in it twice has twice the
        weight. The last step is that of the model.
      trained: whether to average the parameters that are trained, where the run is
        evaluated with their moving average.
      decoding: the search settings; None means those of the run.

    Raises:
      UserError: the trained parameters are wanted, and are the only ones.
    """
    steps, checkpoints = selection.steps, CheckpointReader(workdir.checkpoints)
    if trained and not all(map(checkpoints.has_trained, steps)):
        raise UserError(
            "--trained requires a run with a moving average of its parameters "
            f"(training.ema_decay), and {workdir.path} is not one. Leave --trained out."
        )
    newest = load(workdir.path, checkpoint=steps[-1], decoding=decoding)
    item, like = "trained" if trained else "params", abstract_params(newest.module)
    params = average(checkpoints.params(step, like=like, item=item) for step in steps)
    spacing = {**selection.spacing._asdict(), "forced": bool(selection.faults)}
    params = replicate(params)
    return replace(newest, params=params, averaged_steps=steps, spacing=spacing)


def average_checkpoints(
    workdir: Workdir, *, to: Path, trained: bool = False, **selection: Any
) -> tuple[int, ...]:
    """Writes the average of several checkpoints as a model directory.

    Args:
      trained: as for `average_model`.
      selection: as for `select_checkpoints`.

    Returns:
      The averaged steps.

    Raises:
      UserError: the directory is not a run, or has no such checkpoints.
      OutputError: `to` is not empty.
    """
    check_new_dir(workdir, to)
    selected = select_checkpoints(workdir, **selection)
    model = average_model(workdir, selected, trained=trained)
    origin = {"averaged_steps": list(model.averaged_steps), "step": model.step}
    origin |= {"kinds": ["average"], **model.spacing, **run_facts(workdir)}
    write_model(to, model, config=workdir.read_config(), origin=origin)
    return model.averaged_steps
