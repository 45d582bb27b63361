"""What differs between two configurations, and what of it may under a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from t2t_jax.config import Config, flatten, parse, to_dict
from t2t_jax.errors import ConfigError, DataError

_MOST_DIFFERENCES = 5

CHANGEABLE_ON_RESUME = {
    "steps": "how far to go",
    "logging": "what is told, and when",
    "profile": "which steps are traced",
    "evaluation": "what is scored, and when; it changes nothing that is trained",
    "decoding": "how sentences are searched; likewise",
    "checkpoint": "when to save, and how much to keep",
    "mesh": "where the same sums are computed",
    "training.micro_batches": "in which order the same sums are computed",
    "training.loss_chunks": "in which order the same sums are computed",
    "model.remat": "what is computed twice, to save memory",
    "model.attention": "with which kernel the same is computed",
    "training.on_nonfinite": "when to give up",
    "training.max_bad_steps": "when to give up",
    "training.step_timeout": "when to give up",
    "training.pause_timeout": "when to give up",
    "data.train": "where the text lies; its fingerprint says whether it is the same",
    "data.dev": "likewise",
    "data.held_out": "what the training text is searched for, and reported",
    "data.cache_dir": "where the encoded text lies",
    "data.workers": "how many processes encode it",
}
"""Keys and sections that may differ from those of the run that goes on, and why."""

FIXED_ON_RESUME = {
    "seed": "parameters, data order and dropout are drawn from it",
    "data": "it decides which pairs are in which batch",
    "vocabulary": "the ids of subwords are rows of the embedding",
    "architecture": "the parameters are those of one model",
    "model": "the parameters, and what is computed with them, are the model",
    "rnn": "the parameters, and what is computed with them, are the model",
    "optimizer": "its moments and its schedule go on from step to step",
    "training": "it decides which loss is minimised, and which updates are made",
}
"""Sections of which everything else is part of what the experiment is, and why."""


def differences(old: Config, new: Config) -> list[tuple[str, Any, Any]]:
    """Lists the keys whose values differ, as (key, old value, new value).

    Example:
      >>> differences(Config(seed=1), Config(seed=2))
      [('seed', 1, 2)]
    """
    before, after = dict(flatten(to_dict(old))), dict(flatten(to_dict(new)))
    return [
        (key, before[key], after[key]) for key in before if before[key] != after[key]
    ]


def forbidden_changes(old: Config, new: Config) -> list[str]:
    """Says which differences between a run and its new configuration are refused.

    Example:
      >>> forbidden_changes(Config(steps=7), Config(steps=11))
      []
    """
    return [
        f"{key} was {before!r} when this run began and is {after!r} now: it cannot "
        f"change under a run ({FIXED_ON_RESUME[key.split('.')[0]]}). Leave "
        f"config.{key} as it was, or use a new workdir."
        for key, before, after in differences(old, new)
        if not {key, key.split(".")[0]} & CHANGEABLE_ON_RESUME.keys()
    ]


def require_resumable(old: Config, new: Config, *, workdir: Path) -> None:
    """Checks that a run can be resumed with another configuration.

    Raises:
      ConfigError: keys differ that cannot change under a run; it names them, or their
        number where this is another experiment.

    Example:
      >>> require_resumable(Config(steps=7), Config(steps=11), workdir=Path("run"))
    """
    refused = forbidden_changes(old, new)
    if len(refused) > _MOST_DIFFERENCES:
        raise ConfigError(
            f"{workdir} holds another experiment: {len(refused)} keys differ, such as "
            f"{refused[0].split(' ')[0]}. Choose another workdir, or leave the config "
            "out to resume this run."
        )
    if refused:
        raise ConfigError(refused)


def require_own_checkpoint(
    path: Path, config: Config, *, step: int, meta: Mapping[str, Any]
) -> None:
    """Checks, before anything is written, that a checkpoint is of this experiment.

    Raises:
      DataError: it is of another one, or of a model that is not trained further.
    """
    place = path / "checkpoints" / str(step)
    if "progress" not in meta:
        raise DataError(
            f"Checkpoint {place} is that of a model, without an optimizer to train on "
            "with. Pass the run that it was made from."
        )
    try:
        refused = forbidden_changes(parse(meta["config"]), config)
    except (ConfigError, KeyError):  # Of another version: its arrays are compared.
        return
    if refused:
        raise DataError(
            f"{path / 'config.json'} and checkpoint {place} are of different "
            f"experiments: {len(refused)} keys differ, such as "
            f"{refused[0].split(' ')[0]}. Nothing was changed.\nRestore the run's own "
            "config.json from a copy; or move it away, and run python -m "
            "t2t_jax.main --mode=recover."
        )


def check_fingerprints(
    before: Mapping[str, str],
    now: Mapping[str, str],
    *,
    configs: tuple[Config, Config] | None = None,
) -> None:
    """Checks that a run goes on with the text that it began with.

    Args:
      before: the fingerprints when it began; what is not there is not compared.
      now: those of the text that is there; without "dev" if evaluation is off.
      configs: the configuration of the run and the one of this start, for the message;
        None where they are not known.

    Raises:
      DataError: they differ.

    Example:
      >>> require_same({"train": "ab"}, {"train": "ab", "dev": "cd"})
    """
    changed = {
        name: f"{name} ({was}, now {now.get(name)})"
        if name.startswith("weights")
        else name
        for name, was in before.items()
        # Without evaluation there is no development text to compare.
        if was != now.get(name, was if name == "dev" else None)
    }
    if changed:
        raise DataError(
            f"This run began with other content of: {', '.join(changed.values())}.\n"
            f"{_specs_compared(changed, configs)}Restore it, or begin again in a new "
            "workdir."
        )


def _specs_compared(
    changed: Collection[str], configs: tuple[Config, Config] | None
) -> str:
    """Says of each corpus that has changed whether its name has, too; in one line."""
    if configs is None:
        return ""
    old, new = configs
    told = []
    # Development pairs may be held out of the training text.
    keys = {"train": "train", "weights of train": "train"}
    keys["dev"] = "dev" if old.data.dev or new.data.dev else "train"
    for name in dict.fromkeys(keys[name] for name in changed if name in keys):
        was, now = getattr(old.data, name), getattr(new.data, name)
        if was == now:
            told.append(f"data.{name}={now!r} is as it was, but its content is not.")
        else:
            told.append(f"data.{name} was {was!r} and is {now!r} now.")
    return f"{' '.join(told)}\n" if told else ""
