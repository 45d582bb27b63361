"""Saves a model with changed parameters as a model directory."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2t_jax.data.line_arguments import as_directory, with_article
from t2t_jax.errors import OutputError, UserError
from t2t_jax.model.architectures import make_module
from t2t_jax.run.inference.load import require_params_of
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.inference.model_dir import (
    atomic_directory,
    check_new_dir,
    save_model_dir,
)
from t2t_jax.run.inference.provenance import provenance_of
from t2t_jax.run.workdir import Workdir

# What was measured of, or selected, the parameters before they were changed.
_FORMER = ("bleu", "development", "averaged_steps", "unit", "gaps", "forced")


def save_model(to: str | Path, model: TranslationModel, *, like: str | Path) -> Path:
    """Saves a model as a model directory, which `load` and every mode take.

    For parameters that were changed in JAX, by further training for instance.

    Args:
      to: directory to create; missing or empty.
      model: with its present parameters and search settings.
      like: the run or model directory that it was loaded from, whose configuration,
        vocabularies and provenance the new directory gets.

    Returns:
      The path of the new directory.

    Raises:
      OutputError: `to` is not empty, or cannot be created.
      InputMissingError: `like` is not a run or a model.
      DataError: `like` is damaged.
      UserError: the model is an ensemble.
      ValueError: vocabularies or parameters are not those of the model in `like`.
      TypeError: a directory is not a path, or `model` is something else.

    Example:
      `t2t_jax.save_model("models/tuned", model, like="runs/phrasebook")`.
    """
    target = as_directory(to, caller="save_model")
    origin_dir = Workdir(as_directory(like, caller="save_model"))
    _require_single(model)
    config = dataclasses.replace(origin_dir.read_config(), decoding=model.decoding)
    vocabularies = origin_dir.read_vocabularies(config.vocabulary)
    if vocabularies.fingerprint != model.vocabularies.fingerprint:
        raise ValueError(
            f"model must have the vocabularies of {like}, and has others. Pass the "
            "directory that it was loaded from as like."
        )
    require_params_of(make_module(config.network), model.params)
    known = provenance_of(origin_dir, model.step)
    origin = {name: value for name, value in known.items() if name not in _FORMER}
    try:
        check_new_dir(origin_dir, target)
        with atomic_directory(target) as partial:
            save_model_dir(
                partial,
                model.params,
                vocabularies=model.vocabularies,
                config=config,
                origin={**origin, "kinds": ["changed"]},
                known_words=model.known_words,
            )
    except OutputError as error:  # Here an argument, not a flag.
        messages = [problem.replace("--", "", 1) for problem in error.problems]
        raise OutputError(messages) from error
    return target


def _require_single(model: TranslationModel) -> None:
    if not isinstance(model, TranslationModel):
        raise TypeError(
            "save_model takes a loaded model, not "
            f"{with_article(type(model).__name__)}. Pass "
            "dataclasses.replace(model, params=params)."
        )
    if model.others:
        raise UserError(
            f"A model directory holds one model, not an ensemble of "
            f"{1 + len(model.others)}. Save one at a time."
        )
