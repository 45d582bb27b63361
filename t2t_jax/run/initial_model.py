"""The model that a new run begins with: its network, vocabulary and parameters.

Optimizer, step and the order of the data begin anew, unlike those of a resumed run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from t2t_jax.config import ARCHITECTURES, Config, defaults, flatten, to_dict
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import ConfigError, DataError, UserError
from t2t_jax.run.workdir import Workdir

_FREE = {
    *("dropout", "attention_dropout", "relu_dropout"),
    *("compute_dtype", "remat", "attention"),
}
"""Keys of a network that do not belong to its parameters."""

_FILES = ("vocabulary.file", "vocabulary.source_file")


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
    directory = str(nested.get("init_from", ""))
    if not directory:
        return nested
    own = saved or read_model_config(directory)
    given, model = dict(flatten(nested)), dict(flatten(to_dict(own)))
    usual, problems = defaults(), []
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
        target = nested.setdefault(section, {}) if "." in key else nested
        target[key.rpartition(".")[2]] = model[key]
    if problems:
        raise ConfigError(problems)
    return nested


def read_model_config(directory: str | Path) -> Config:
    """Reads the configuration of a run or a model.

    Raises:
      UserError: the directory is neither, or is damaged.
    """
    try:
        return Workdir(Path(directory)).read_config()
    except UserError as error:
        problems = [f"init_from={problem}" for problem in error.problems]
        raise type(error)(problems) from error


def read_vocabularies(config: Config) -> VocabularyPair:
    """Reads the vocabularies of the model in `config.init_from`.

    Raises:
      DataError: they are damaged, or those of `config.vocabulary` are others.
    """
    settings = config.vocabulary
    found = VocabularyPair.load(config.init_from, config=settings)
    names = [getattr(settings, key.partition(".")[2]) for key in _FILES]
    for key, name, own in zip(_FILES, names, reversed(found), strict=True):
        if name:
            found_in = type(own).load(name, advice=f"Change config.{key}.")
            _require_same(key, found_in.pieces, own.pieces, found_in.size, own.size)
    return found


def _require_same(
    key: str, given: Any, own: Any, given_size: int, own_size: int
) -> None:
    ids = range(min(given_size, own_size))
    pairs = zip(ids, given(ids), own(ids), strict=True)
    differing = next((f"id {i} is {a!r}, not {b!r}" for i, a, b in pairs if a != b), "")
    if given_size != own_size:
        differing = f"it has {given_size:,} subwords, not {own_size:,}"
    if differing:
        raise DataError(
            f"{key} must be the vocabulary of init_from, whose embedding has a row for "
            f"each subword: {differing}. Leave config.{key} out."
        )


def _is_adopted(key: str, own: Config) -> bool:
    section, _, name = key.rpartition(".")
    if section == ARCHITECTURES[own.architecture]:
        return name not in _FREE
    if section == "vocabulary":
        return key not in _FILES
    return key == "architecture" or section == "decoding"
