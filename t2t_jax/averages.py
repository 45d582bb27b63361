"""The mean of several checkpoints of a run, as a model.

Paper: §6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from t2t_jax.checkpointing.averaging import average
from t2t_jax.checkpointing.checkpoints import Checkpoints, Meta
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import DataError, OutputError
from t2t_jax.loading import Model, abstract_params
from t2t_jax.model.architectures import make_module
from t2t_jax.workdir import Workdir


def load_average(
    workdir: Workdir,
    *,
    last: int = 0,
    steps: Sequence[int] = (),
    force: bool = False,
    decoding: DecodingConfig | None = None,
) -> Model:
    """Loads the mean of several checkpoints of a run.

    Args:
      workdir: the run.
      last: how many periodic checkpoints to take, the newest; 0 means as many as
        `checkpoint.keep`.
      steps: the steps to take instead, if there are any.
      force: takes them however they are spaced.
      decoding: how to search; None means as the run was configured.

    Returns:
      The model, numbered as the newest of its checkpoints.

    Raises:
      DataError: there are not so many checkpoints, or not those.

    Paper: §6.1.
    """
    config = workdir.read_config()
    module = make_module(config.network)
    checkpoints = Checkpoints(workdir.checkpoints)
    chosen = _chosen(checkpoints, last=last or config.checkpoint.keep, steps=steps)
    like = abstract_params(module)
    return Model(
        module,
        average(checkpoints.params(step, like=like) for step in chosen),
        Vocabularies.load(workdir.path),
        decoding or config.decoding,
        chosen[-1],
        averaged_steps=tuple(chosen),
    )


def average_checkpoints(
    workdir: Workdir,
    *,
    to: Path,
    last: int = 0,
    steps: Sequence[int] = (),
    force: bool = False,
) -> tuple[int, ...]:
    """Writes the mean of several checkpoints as a model directory.

    Args:
      workdir: the run.
      to: the directory to make; it must not exist, or be empty.
      last: as in `load_average`, like what follows.
      steps: the steps to take instead.
      force: takes them however they are spaced.

    Returns:
      The steps that were averaged.

    Raises:
      DataError: there are not so many checkpoints, or not those.
      OutputError: `to` holds something already.
    """
    inside = workdir.checkpoints.resolve() in [to.resolve(), *to.resolve().parents]
    if inside or (to.exists() and (not to.is_dir() or any(to.iterdir()))):
        raise OutputError(
            f"--to={to} must be a new or empty directory outside the checkpoints, and "
            "is not. Name another."
        )
    model = load_average(workdir, last=last, steps=steps, force=force)
    chosen = list(model.averaged_steps)
    target = Workdir(to)
    target.create()
    model.vocabularies.save(to)
    written = Checkpoints(target.checkpoints, keep=1)
    meta: Meta = {"step": model.step, "kinds": ["average"], "averaged_steps": chosen}
    written.save(model.step, params=model.params, optimizer=None, meta=meta)
    written.close()
    target.write_json("model.json", {"averaged_steps": chosen, "step": model.step})
    target.write_config(workdir.read_config())
    return model.averaged_steps


def _chosen(checkpoints: Checkpoints, *, last: int, steps: Sequence[int]) -> list[int]:
    there = checkpoints.steps()
    if steps:
        missing = sorted(set(steps) - set(there))
        if missing or len(set(steps)) < len(steps):
            raise DataError(
                f"--average_steps={','.join(map(str, steps))} must be different steps "
                f"of {checkpoints.directory}, which holds "
                f"{', '.join(map(str, there)) or 'none'}."
            )
        return sorted(steps)
    periodic = [step for step in there if "periodic" in checkpoints.meta(step)["kinds"]]
    if len(periodic) < last:
        raise DataError(
            f"--last={last} periodic checkpoints are to be averaged, and "
            f"{checkpoints.directory} holds {len(periodic)}. Lower --last, or keep "
            "more with config.checkpoint.keep."
        )
    return periodic[-last:]
