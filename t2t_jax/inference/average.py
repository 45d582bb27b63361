"""The mean of several checkpoints of a run, as a model.

Paper: §6.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from t2t_jax.checkpointing.averaging import (
    CheckpointInfo,
    Selection,
    average,
    info_from_meta,
    select,
    sliding_windows,
    spacing_units,
)
from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.data.token_cache.known_words import KnownWords
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.distributed.gather import replicate
from t2t_jax.errors import DataError, UserError
from t2t_jax.inference.load import abstract_params
from t2t_jax.inference.model import TranslationModel
from t2t_jax.inference.model_dir import atomic_directory, check_new_dir, save_model_dir
from t2t_jax.inference.provenance import run_facts
from t2t_jax.model.architectures import make_module
from t2t_jax.run.example_sentences import example_sentences
from t2t_jax.run.workdir import Workdir


class CheckpointAverager:
    """Chooses checkpoints of a run, and makes their mean.

    Attributes:
      last: how many checkpoints the run averages: `checkpoint.keep`.

    Raises:
      UserError: the directory is no run, but a model or neither.
    """

    def __init__(self, workdir: Workdir):
        if workdir.is_model:
            raise UserError(
                f"--workdir={workdir.path} must be a run, whose checkpoints can be "
                "averaged, and is a model of one. Name the run it was made from, or "
                "use the model as it is."
            )
        self._workdir, self._config = workdir, workdir.read_config()
        self.last = self._config.checkpoint.keep
        self._checkpoints = Checkpoints(workdir.checkpoints)
        self._units = spacing_units(self._config.checkpoint)
        platform = jax.local_devices()[0].platform
        self._module = make_module(self._config.network, platform=platform)
        self._vocabularies = workdir.read_vocabularies(self._config.vocabulary)
        self._known_words = KnownWords.load(workdir.path)

    def select(
        self, *, last: int = 0, steps: Sequence[int] = (), force: bool = False
    ) -> Selection:
        """Chooses the checkpoints of one average.

        Args:
          last: how many periodic checkpoints to take, the newest; 0 means as many as
            `checkpoint.keep`.
          steps: the steps to take instead, if there are any, in any order.
          force: takes them whatever their faults: spaced unevenly, not periodic, or
            named twice, in which case they weigh twice.

        Raises:
          DataError: there are not so many checkpoints, or not those, or they have
            faults and `force` is not set.
        """
        if steps:
            self._require(steps)
            selection = select([self._mark(step) for step in steps], self._units)
        else:
            selection = self.windows(last=last)[-1]
        if not force:
            selection.check_even()
        return selection

    def windows(self, *, last: int = 0) -> list[Selection]:
        """Lists every `last` periodic checkpoints that follow one another.

        Returns:
          At least one window, the oldest first, those with faults among them.

        Raises:
          DataError: there are not so many checkpoints.
        """
        asked = f"--last={last}" if last else f"checkpoint.keep={self.last}"
        marks = [self._mark(step) for step in self._checkpoints.steps()]
        found = sliding_windows(marks, self._units, last=last or self.last)
        if not found:
            held = sum(mark.is_periodic for mark in marks)
            advice = f"Set --last to a number from 1 to {held}"
            if not held:
                advice = "Train with periodic checkpoints, or set --average_steps"
            raise DataError(
                f"{asked} periodic checkpoints are to be averaged, and "
                f"{self._checkpoints.directory} holds {held}. {advice}; "
                "config.checkpoint.* says how many a run keeps, and how often."
            )
        return found

    def model(
        self, steps: Sequence[int], *, decoding: DecodingConfig | None = None
    ) -> TranslationModel:
        """Makes the mean of checkpoints, on each device of this process.

        Args:
          steps: of the checkpoints, oldest first; one that comes twice weighs twice.
          decoding: how to search; None means as the run was configured.

        Returns:
          The model, numbered as the newest of its checkpoints.
        """
        recorded = self._checkpoints.meta(steps[-1]).get("fingerprints", {})
        self._workdir.check_vocabularies(self._vocabularies, recorded)
        like = abstract_params(self._module)
        mean = average(self._checkpoints.params(step, like=like) for step in steps)
        return TranslationModel(
            self._module,
            replicate(mean),
            self._vocabularies,
            decoding or self._config.decoding,
            steps[-1],
            averaged_steps=tuple(steps),
            known_words=self._known_words,
        )

    def _mark(self, step: int) -> CheckpointInfo:
        return info_from_meta(self._checkpoints.meta(step))

    def _require(self, steps: Sequence[int]) -> None:
        there = self._checkpoints.steps()
        if not set(steps) <= set(there):
            raise DataError(
                f"--average_steps={','.join(map(str, steps))} must be steps of "
                f"{self._checkpoints.directory}, which holds "
                f"{', '.join(map(str, there)) or 'none'}."
            )


def load_average(
    workdir: Workdir,
    *,
    last: int = 0,
    steps: Sequence[int] = (),
    force: bool = False,
    decoding: DecodingConfig | None = None,
) -> TranslationModel:
    """Loads the mean of several checkpoints of a run.

    Args:
      last: how many periodic checkpoints to take, the newest; 0 means as many as
        `checkpoint.keep`.
      steps: the steps to take instead, if there are any, in any order.
      force: takes them whatever their faults, as in `CheckpointAverager.select`.
      decoding: how to search; None means as the run was configured.

    Returns:
      The model, numbered as the newest of its checkpoints.

    Raises:
      UserError: the directory is no run, or has no such checkpoints.

    Paper: §6.1.
    """
    averager = CheckpointAverager(workdir)
    selection = averager.select(last=last, steps=steps, force=force)
    model = averager.model(selection.steps, decoding=decoding)
    return dataclasses.replace(model, spacing=_described(selection))


def _described(selection: Selection) -> dict[str, Any]:
    return {**selection.spacing._asdict(), "forced": bool(selection.faults)}


def average_checkpoints(
    workdir: Workdir,
    *,
    to: Path,
    last: int = 0,
    steps: Sequence[int] = (),
    force: bool = False,
) -> tuple[int, ...]:
    """Writes the mean of several checkpoints as a model directory.

    Its model.json says which they were, how far apart, whether `force` has overruled a
    fault, and of which run and text the model is.

    Args:
      to: the directory to make; it must not exist, or be empty.
      last: as in `load_average`, like what follows.
      steps: the steps to take instead.
      force: takes them whatever their faults.

    Returns:
      The steps that were averaged.

    Raises:
      UserError: as for `load_average`.
      OutputError: `to` holds something already.
    """
    check_new_dir(workdir, to)
    averager = CheckpointAverager(workdir)
    selection = averager.select(last=last, steps=steps, force=force)
    model = averager.model(selection.steps)
    origin = {
        "averaged_steps": list(selection.steps),
        "step": model.step,
        "kinds": ["average"],
        **_described(selection),
        **run_facts(workdir),
    }
    if examples := example_sentences(workdir):
        origin["examples"] = list(examples)
    with atomic_directory(to, flag="to") as beside:
        save_model_dir(
            beside,
            model.params,
            vocabularies=model.vocabularies,
            config=workdir.read_config(),
            origin=origin,
            known_words=model.known_words,
        )
    return selection.steps
