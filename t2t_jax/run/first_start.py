"""What a new run begins with: another model, or an interrupted start's vocabulary.

From a model in `init_from` come the network, the vocabulary and the parameters.
Optimizer, step and the order of the data begin anew, unlike those of a resumed run.

A run exists from `config.json` on. Before that, a workdir can hold a vocabulary and
`data.json`, written first, which records the settings and the text that the vocabulary
was trained with. A start with the same ones reuses it. Any other start is refused
before anything is written: the vocabulary may belong to checkpoints that were moved or
whose disk is not mounted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from t2t_jax.config import ARCHITECTURES, Config, defaults, flatten, set_keys, to_dict
from t2t_jax.data.corpora.corpus import Corpus
from t2t_jax.data.vocabulary.pair import FILES, VocabularyPair, joint_fingerprint
from t2t_jax.errors import ConfigError, DataError, UserError, rewording
from t2t_jax.files import read_json_if_valid, read_json_object
from t2t_jax.run.workdir import Workdir

_FREE = {
    *("dropout", "attention_dropout", "relu_dropout"),
    *("compute_dtype", "remat", "attention"),
}
"""Keys of a network that do not belong to its parameters."""

_FILES = ("vocabulary.file", "vocabulary.source_file")

BEGAN_WITH = "began_with"
"""The entry of data.json and model.json: the imported model that a run began with."""

_MOST_RUNS = 100  # one after another; a directory can be put in a circle of them


def adopt_model(
    values: Mapping[str, Any], *, saved: Config | None, chosen: Collection[str] = ()
) -> dict[str, Any]:
    """Replaces network and vocabulary settings by those of the model to begin with.

    A setting of a search that has its default, and was not chosen, is replaced, too.
    Other settings stay.

    Args:
      values: nested values of a configuration.
      saved: the configuration of the run if it exists; None to read that of
        `init_from`.
      chosen: keys that were set on a command line, of this start or an earlier one.

    Returns:
      The values; unchanged without `init_from`.

    Raises:
      ConfigError: settings that were chosen, or are not the default, differ from those
        of the model.
      UserError: `init_from` is not a run or a model.
    """
    nested: dict[str, Any] = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
    }
    if not (directory := str(nested.get("init_from", ""))):
        return nested
    with rewording(lambda problem: f"init_from={problem}"):
        own = saved or Workdir(Path(directory)).read_config()
    given, model = dict(flatten(nested)), dict(flatten(to_dict(own)))
    usual, problems = defaults(), []
    adopted = {}
    for key in filter(lambda key: _is_adopted(key, own), model):
        value, section = given.get(key, usual[key]), key.partition(".")[0]
        is_chosen = key in chosen or value != usual[key]
        if section == "decoding" and is_chosen:
            continue
        if is_chosen and value != model[key]:
            problems.append(
                f"{key}={value!r} differs from {model[key]!r} of the model in "
                f"init_from={directory}. Leave config.{key} out."
            )
        adopted[key] = model[key]
    if problems:
        raise ConfigError(problems)
    return set_keys(nested, adopted)


def _is_adopted(key: str, own: Config) -> bool:
    section, _, name = key.rpartition(".")
    if section == ARCHITECTURES[own.architecture]:
        return name not in _FREE
    if section == "vocabulary":
        return key not in _FILES
    return key == "architecture" or section == "decoding"


def imported_origin(workdir: Workdir) -> dict[str, str]:
    """Returns what is known of the imported model that a run or a model comes from.

    A run records it at its start, as the model of `init_from` may not stay where it is.
    Of runs without a record, `init_from` is followed.

    Returns:
      `format` and, if known, `license` as Hugging Face names it; {} if there is none.
    """
    for _ in range(_MOST_RUNS):
        name = "model.json" if workdir.is_model else "data.json"
        origin = read_json_if_valid(workdir.path / name)
        found = origin.get("imported") or origin.get(BEGAN_WITH)
        if isinstance(found, dict) and "format" in found:
            known = ("format", "license")
            return {key: str(found[key]) for key in known if key in found}
        if workdir.is_model:  # Its init_from is a name without its folder.
            break
        try:
            workdir = Workdir(Path(workdir.read_config().init_from))
        except (OSError, UserError):
            break
        if not workdir.path.is_absolute():
            break
    return {}


def read_vocabularies(config: Config) -> VocabularyPair:
    """Reads the vocabularies of the model in `config.init_from`.

    Raises:
      DataError: they are damaged, or those of `config.vocabulary` are others.
    """
    settings = config.vocabulary
    found = VocabularyPair.load(config.init_from, config=settings)
    names = [getattr(settings, key.partition(".")[2]) for key in _FILES]
    for key, name, own in zip(_FILES, names, reversed(found), strict=True):
        if not name:
            continue
        other = type(own).load(name, advice=f"Change config.{key}.")
        ids = range(min(other.size, own.size))
        pairs = zip(ids, other.pieces(ids), own.pieces(ids), strict=True)
        fault = next((f"id {i} is {a!r}, not {b!r}" for i, a, b in pairs if a != b), "")
        if other.size != own.size:
            fault = f"it has {other.size:,} subwords, not {own.size:,}"
        if fault:
            raise DataError(
                f"{key} must be the vocabulary of init_from, whose embedding has a row "
                f"for each subword: {fault}. Leave config.{key} out."
            )
    return found


_MISMATCH = "is not the one that data.json describes"


def vocabulary_settings(config: Config) -> dict[str, Any]:
    """Returns the settings that a vocabulary depends on."""
    return {**dataclasses.asdict(config.vocabulary), "seed": config.seed}


def require_same_start(config: Config, path: Path) -> None:
    """Checks, before text is read, that a vocabulary was trained with these settings.

    Raises:
      DataError: it was trained with other settings, or with unknown ones.
    """
    if not (inputs := _read_inputs(path)):
        return
    # Keys that a version before this has not recorded had their defaults.
    usual = vocabulary_settings(Config())
    for name, value in vocabulary_settings(config).items():
        if (was := inputs.get(name, usual[name])) != value:
            key = name if name == "seed" else f"vocabulary.{name}"
            reason = f"was made with {key}={was!r}, and this start has {value!r}"
            raise _mismatch_error(path, reason, f"Set config.{key}={was}")


def load_partial_vocabularies(
    train: Corpus, config: Config, path: Path
) -> VocabularyPair | None:
    """Loads the vocabularies of an interrupted start.

    Returns:
      None if they have to be loaded from the configured files, or trained.

    Raises:
      DataError: they are damaged, or were trained on another text.
    """
    inputs, settings = _read_inputs(path), config.vocabulary
    if not inputs or settings.file or settings.source_file or config.init_from:
        return None  # `require_same_vocabularies` compares the configured ones.
    if inputs.get("corpus") != train.fingerprint():
        raise _mismatch_error(path, "was trained on another text", "Restore it")
    wanted = FILES if settings.source_size else FILES[:1]
    if not all((path / name).is_file() for name in wanted):
        return None  # Killed before the second was written.
    try:
        return VocabularyPair.load(path, config=settings)
    except DataError as error:
        raise _mismatch_error(path, _MISMATCH, "Restore it from a copy") from error


def require_same_vocabularies(vocabularies: VocabularyPair, path: Path) -> None:
    """Checks that vocabularies are those of an interrupted start, if there are any.

    Raises:
      DataError: a file there holds another one.
    """
    inputs = _read_inputs(path)
    if inputs and vocabularies.fingerprint != inputs["fingerprint"]:
        raise _mismatch_error(path, _MISMATCH, "Restore it from a copy")


def _vocabulary_files(path: Path) -> list[str]:
    return [name for name in FILES if (path / name).exists()]


def _read_inputs(path: Path) -> dict[str, Any]:
    """Reads the inputs and the fingerprint of the vocabulary from data.json.

    Returns:
      {} where there is no vocabulary.
    """
    if not _vocabulary_files(path):
        return {}
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
            "may be that of a run: data.json with its inputs is missing or damaged",
            "Restore config.json or data.json from a copy",
        ) from error


def _mismatch_error(path: Path, reason: str, advice: str) -> DataError:
    names = " and ".join(_vocabulary_files(path))
    return DataError(
        f"{path} has no config.json, and {names} there {reason}. Nothing was "
        f"changed.\n{advice}, pass another workdir, or remove {names} to start over."
    )
