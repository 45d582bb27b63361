"""Averages several checkpoints of a run into a model.

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
from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.data.source_lines import SourceLines
from t2t_jax.data.token_cache.known_words import KnownWords
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.distributed.gather import replicate
from t2t_jax.errors import DataError, UserError
from t2t_jax.model.architectures import make_module
from t2t_jax.run.inference.load import abstract_params
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.inference.model_dir import (
    atomic_directory,
    check_new_dir,
    save_model_dir,
)
from t2t_jax.run.inference.provenance import run_facts
from t2t_jax.run.text_facts import example_sentences
from t2t_jax.run.workdir import Workdir


class CheckpointAverager:
    """Selects and averages checkpoints of a run.

    Args:
      trained: whether to average the parameters that are trained, where the run is
        evaluated with others: a moving average, or those of a schedule-free optimizer.

    Raises:
      UserError: the directory is not a run.
    """

    def __init__(self, workdir: Workdir, *, trained: bool = False):
        if workdir.is_model:
            raise UserError(
                f"--workdir={workdir.path} must be a run, whose checkpoints can be "
                "averaged, and is a model. Pass the run that it was made from, or use "
                "the model without averaging."
            )
        self._workdir, self._config = workdir, workdir.read_config()
        self._item = "trained" if trained else "params"
        self.last = self._config.checkpoint.keep
        self._checkpoints = Checkpoints(workdir.checkpoints)
        self._units = spacing_units(self._config.checkpoint)
        platform = jax.local_devices()[0].platform
        self._module = make_module(self._config.network, platform=platform)
        self._vocabularies = workdir.read_vocabularies(self._config.vocabulary)
        self._known_words = KnownWords.load(workdir.path)
        self._source_lines = SourceLines.load(workdir.path)

    def select(
        self, *, last: int = 0, steps: Sequence[int] = (), force: bool = False
    ) -> Selection:
        """Selects the checkpoints of one average.

        Args:
          last: number of newest periodic checkpoints; 0 means `checkpoint.keep`.
          steps: the steps to average instead, in any order.
          force: accepts checkpoints that are unevenly spaced, not periodic, or given
            twice, which doubles their weight.

        Raises:
          DataError: there are not enough checkpoints, or not those, or they have faults
            and `force` is not set.
        """
        if steps:
            saved = self._checkpoints.steps()
            if not set(steps) <= set(saved):
                raise DataError(
                    f"--average_steps={','.join(map(str, steps))} must be steps of "
                    f"{self._checkpoints.directory}, which holds "
                    f"{', '.join(map(str, saved)) or 'none'}."
                )
            selection = select([self._info(step) for step in steps], self._units)
        else:
            selection = self.windows(last=last)[-1]
        if not force:
            selection.check_even()
        return selection

    def windows(self, *, last: int = 0) -> list[Selection]:
        """Lists every `last` consecutive periodic checkpoints, also with faults.

        Raises:
          DataError: there are not enough checkpoints.
        """
        setting = f"--last={last}" if last else f"checkpoint.keep={self.last}"
        infos = [self._info(step) for step in self._checkpoints.steps()]
        windows = sliding_windows(infos, self._units, last=last or self.last)
        if not windows:
            held = sum(info.is_periodic for info in infos)
            advice = "Train with periodic checkpoints, or set --average_steps"
            if held:
                advice = f"Set --last to a number from 1 to {held}"
            raise DataError(
                f"{setting} periodic checkpoints are to be averaged, and "
                f"{self._checkpoints.directory} holds {held}. {advice}; "
                "config.checkpoint.* sets how many a run keeps, and how often."
            )
        return windows

    def model(
        self, steps: Sequence[int], *, decoding: DecodingConfig | None = None
    ) -> TranslationModel:
        """Averages checkpoints, on each device of this process.

        Args:
          steps: oldest first; a step that is given twice has twice the weight.
          decoding: the search settings; None means those of the run.

        Raises:
          UserError: the trained parameters are wanted, and are the only ones.
        """
        has_item = map(self._checkpoints.has_trained, steps)
        if self._item == "trained" and not all(has_item):
            raise UserError(
                "--trained requires a run that is evaluated with other parameters than "
                "those it trains (training.ema_decay, optimizer.name=schedule_free), "
                f"and {self._workdir.path} is not one. Leave --trained out."
            )
        recorded = self._checkpoints.meta(steps[-1]).get("fingerprints", {})
        self._workdir.check_vocabularies(self._vocabularies, recorded)
        like = abstract_params(self._module)
        mean = average(
            self._checkpoints.params(step, like=like, item=self._item) for step in steps
        )
        return TranslationModel(
            self._module,
            replicate(mean),
            self._vocabularies,
            decoding or self._config.decoding,
            steps[-1],
            averaged_steps=tuple(steps),
            known_words=self._known_words,
            source_lines=self._source_lines,
            is_parser=reads_trees(self._config.data.train),
        )

    def _info(self, step: int) -> CheckpointInfo:
        return info_from_meta(self._checkpoints.meta(step))


def load_average(
    workdir: Workdir,
    *,
    last: int = 0,
    steps: Sequence[int] = (),
    force: bool = False,
    decoding: DecodingConfig | None = None,
) -> TranslationModel:
    """Loads the average of several checkpoints of a run, with the newest one's step.

    The arguments are those of `CheckpointAverager.select` and `model`.

    Raises:
      UserError: the directory is not a run, or has no such checkpoints.
    """
    averager = CheckpointAverager(workdir)
    selection = averager.select(last=last, steps=steps, force=force)
    model = averager.model(selection.steps, decoding=decoding)
    return dataclasses.replace(model, spacing=_spacing_values(selection))


def _spacing_values(selection: Selection) -> dict[str, Any]:
    return {**selection.spacing._asdict(), "forced": bool(selection.faults)}


def average_checkpoints(
    workdir: Workdir,
    *,
    to: Path,
    last: int = 0,
    steps: Sequence[int] = (),
    force: bool = False,
    trained: bool = False,
) -> tuple[int, ...]:
    """Writes the average of several checkpoints as a model directory.

    Args:
      last: as in `CheckpointAverager.select`, like `steps` and `force`.
      trained: as in `CheckpointAverager`.

    Returns:
      The averaged steps.

    Raises:
      UserError: as for `load_average`.
      OutputError: `to` is not empty.
    """
    check_new_dir(workdir, to)
    averager = CheckpointAverager(workdir, trained=trained)
    selection = averager.select(last=last, steps=steps, force=force)
    model = averager.model(selection.steps)
    origin = {
        "averaged_steps": list(selection.steps),
        "step": model.step,
        "kinds": ["average"],
        **_spacing_values(selection),
        **run_facts(workdir),
    }
    if examples := example_sentences(workdir):
        origin["examples"] = list(examples)
    with atomic_directory(to) as directory:
        save_model_dir(
            directory,
            model.params,
            vocabularies=model.vocabularies,
            config=workdir.read_config(),
            origin=origin,
            known_words=model.known_words,
        )
    return selection.steps
