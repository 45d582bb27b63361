"""Reuses the vocabulary of an interrupted start, or of `--mode=prepare`.

A run exists from `config.json` on. Before that, a workdir can hold a vocabulary and
`data.json`, written first, which records the settings and the text that the vocabulary
was trained with. A start with the same ones reuses it. Any other start is refused
before anything is written: the vocabulary may belong to checkpoints that were moved or
whose disk is not mounted.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.corpus import Corpus
from t2t_jax.data.vocabulary.pair import FILES, VocabularyPair, joint_fingerprint
from t2t_jax.errors import DataError, UserError
from t2t_jax.files import read_json_object

_MISMATCH = "is not the one that data.json describes"


def vocabulary_settings(config: Config) -> dict[str, Any]:
    """Returns the settings that a vocabulary depends on."""
    return {**dataclasses.asdict(config.vocabulary), "seed": config.seed}


def require_same_start(config: Config, path: Path) -> None:
    """Checks, before text is read, that a vocabulary was trained with these settings.

    Raises:
      DataError: it was trained with other settings, or with unknown ones.
    """
    if not _vocabulary_files(path):
        return
    # Keys that a version before this has not recorded had their defaults.
    inputs = {**vocabulary_settings(Config()), **_read_inputs(path)}
    for name, value in vocabulary_settings(config).items():
        if inputs.get(name) != value:
            key = name if name == "seed" else f"vocabulary.{name}"
            raise _mismatch_error(
                path,
                f"was made with {key}={inputs.get(name)!r}, and this start has "
                f"{value!r}",
                f"Set config.{key}={inputs.get(name)}",
            )


def load_partial_vocabularies(
    train: Corpus, config: Config, path: Path
) -> VocabularyPair | None:
    """Loads the vocabularies of an interrupted start.

    Returns:
      None if they have to be loaded from the configured files, or trained.

    Raises:
      DataError: they are damaged, or were trained on another text.
    """
    if not _vocabulary_files(path):
        return None
    settings = config.vocabulary
    if settings.file or settings.source_file or config.init_from:
        return None  # `save` compares the configured ones with those here.
    inputs = _read_inputs(path)
    if inputs.get("corpus") != train.fingerprint():
        raise _mismatch_error(path, "was trained on another text", "Restore it")
    wanted = FILES if config.vocabulary.source_size else FILES[:1]
    if not all((path / name).is_file() for name in wanted):
        return None  # Killed before the second was written.
    try:
        return VocabularyPair.load(path, config=config.vocabulary)
    except DataError as error:
        raise _mismatch_error(path, _MISMATCH, "Restore it from a copy") from error


def require_same_vocabularies(vocabularies: VocabularyPair, path: Path) -> None:
    """Checks that vocabularies are those of an interrupted start, if there are any.

    Raises:
      DataError: a file there holds another one.
    """
    if (
        _vocabulary_files(path)
        and vocabularies.fingerprint != _read_inputs(path)["fingerprint"]
    ):
        raise _mismatch_error(path, _MISMATCH, "Restore it from a copy")


def _vocabulary_files(path: Path) -> list[str]:
    return [name for name in FILES if (path / name).exists()]


def _read_inputs(path: Path) -> dict[str, Any]:
    """Reads the inputs and the fingerprint of the vocabulary from data.json."""
    try:
        data = read_json_object(path / "data.json", advice="")
        sides = ["vocabulary"]
        if "vocabulary" not in data:
            sides = ["source_vocabulary", "target_vocabulary"]
        fingerprint = joint_fingerprint(*(data[name]["fingerprint"] for name in sides))
        return {**data["vocabulary_lesson"], "fingerprint": fingerprint}
    except (OSError, UserError, KeyError, TypeError, ValueError) as error:
        raise _mismatch_error(
            path,
            "may be that of a run: data.json, which records its inputs, is missing or "
            "damaged",
            "Restore config.json or data.json from a copy",
        ) from error


def _mismatch_error(path: Path, reason: str, advice: str) -> DataError:
    names = " and ".join(_vocabulary_files(path))
    return DataError(
        f"{path} has no config.json, and {names} there {reason}. Nothing was "
        f"changed.\n{advice}, pass another workdir, or remove {names} to prepare the "
        "text again."
    )
