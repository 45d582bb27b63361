"""What a start that was interrupted, or `--mode=prepare`, has left in a workdir.

Until `config.json` exists there is no run. What there can be is a vocabulary, and
`data.json`, which was written before it and holds its lesson: the settings and the text
that it was learnt from. A start with the same lesson continues there; any other one is
refused before anything is written, since the vocabulary may be that of checkpoints that
were moved, or are on a disk that is not mounted.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import Corpus
from t2t_jax.data.vocabulary.pair import FILES, VocabularyPair, joint_fingerprint
from t2t_jax.errors import DataError, UserError
from t2t_jax.files import read_json_object

_ANOTHER = "is not the one that data.json describes"


def lesson_settings(config: Config) -> dict[str, Any]:
    """Lists the settings that a vocabulary depends on.

    Example:
      >>> lesson_settings(Config())["seed"]
      0
    """
    return {**dataclasses.asdict(config.vocabulary), "seed": config.seed}


def require_same_start(config: Config, path: Path) -> None:
    """Checks, before text is read, that a vocabulary was made with these settings.

    Args:
      config: The configuration of this start.
      path: The workdir, which has no config.json.

    Raises:
      DataError: a vocabulary was made with other settings, or nothing tells with which.
    """
    if not _held(path):
        return
    lesson = _lesson(path)
    for name, value in lesson_settings(config).items():
        if lesson.get(name) != value:
            key = name if name == "seed" else f"vocabulary.{name}"
            raise _refused(
                path,
                f"was made with {key}={lesson.get(name)!r}, and this start has "
                f"{value!r}",
                f"Set config.{key}={lesson.get(name)}",
            )


def prepared_vocabularies(
    train: Corpus, config: Config, path: Path
) -> VocabularyPair | None:
    """Loads the vocabularies that an interrupted start has left.

    Args:
      config: The configuration of this start.
      path: The workdir, which has no config.json.

    Returns:
      None if they have to be loaded from the configured files, or learnt.

    Raises:
      DataError: they are damaged, or were learnt from another text.
    """
    if not _held(path):
        return None
    if config.vocabulary.file or config.vocabulary.source_file:
        return None  # Saving them compares them with those that are here.
    lesson = _lesson(path)
    if lesson.get("corpus") != train.fingerprint():
        raise _refused(path, "was learnt from another training text", "Restore it")
    wanted = FILES if config.vocabulary.source_size else FILES[:1]
    if not all((path / name).is_file() for name in wanted):
        return None  # Killed between the two, the second of which is learnt again.
    try:
        return VocabularyPair.load(path, config=config.vocabulary)
    except DataError as error:
        raise _refused(path, _ANOTHER, "Restore it from a copy") from error


def require_prepared(vocabularies: VocabularyPair, path: Path) -> None:
    """Checks that vocabularies are those that an interrupted start has begun with.

    Args:
      vocabularies: Loaded or learnt by this start.
      path: The workdir, which has no config.json.

    Raises:
      DataError: files there hold others, or one file does.
    """
    if _held(path) and vocabularies.fingerprint != _lesson(path)["fingerprint"]:
        raise _refused(path, _ANOTHER, "Restore it from a copy")


def _held(path: Path) -> list[str]:
    return [name for name in FILES if (path / name).exists()]


def _lesson(path: Path) -> dict[str, Any]:
    """Reads what the vocabulary was learnt from, and its fingerprint."""
    try:
        told = read_json_object(path / "data.json", mend="")
        sides = ["vocabulary"]
        if "vocabulary" not in told:
            sides = ["source_vocabulary", "target_vocabulary"]
        found = joint_fingerprint(*(told[name]["fingerprint"] for name in sides))
        return {**told["vocabulary_lesson"], "fingerprint": found}
    except (OSError, UserError, KeyError, TypeError, ValueError) as error:
        raise _refused(
            path,
            "may be that of a run: data.json, which tells where it comes from, is "
            "missing or damaged",
            "Restore config.json or data.json from a copy",
        ) from error


def _refused(path: Path, reason: str, advice: str) -> DataError:
    names = " and ".join(_held(path))
    return DataError(
        f"{path} has no config.json, and {names} there {reason}. Nothing was "
        f"changed.\n{advice}, pass another workdir, or remove {names} to prepare the "
        "text again."
    )
