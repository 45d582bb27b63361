"""Which configuration keys may change when a run is resumed."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from t2t_jax.config import Config, flatten, parse, to_dict
from t2t_jax.errors import ConfigError, DataError
from t2t_jax.run.text import absolute_spec

_MAX_LISTED = 5
_Configs: TypeAlias = tuple[Config, Config] | None

CHANGEABLE_ON_RESUME = {
    "init_from": "the path of the first parameters, which are in the checkpoints",
    "steps": "the number of optimizer steps",
    "logging": "what is logged, and when",
    "profile": "which steps are traced",
    "evaluation": "what is scored, and when, and when the run is stopped",
    "decoding": "the search parameters; they do not affect training",
    "checkpoint": "when to save, and how many to keep",
    "mesh": "the devices that compute the same sums",
    "optimizer.decay_steps": "when the learning rate falls, if it has not begun to",
    "training.micro_batches": "the order in which the same sums are computed",
    "training.loss_chunks": "the order in which the same sums are computed",
    "model.remat": "what is recomputed, to save memory",
    "model.attention": "the kernel of the same computation",
    "training.on_nonfinite": "when the run is stopped",
    "training.max_bad_steps": "when the run is stopped",
    "training.step_timeout": "when the run is stopped",
    "training.pause_timeout": "when the run is stopped",
    "data.train": "the path of the text, whose fingerprint must be the same",
    "data.dev": "the path of the text, whose fingerprint must be the same",
    "data.held_out": "the test sets of the leakage report",
    "data.glossary": "the path of the text, whose fingerprint must be the same",
    "data.subword_joiner": "how text is read, whose fingerprint must be the same",
    "data.cache_dir": "the path of the encoded text",
    "data.workers": "the number of processes that encode it",
}
"""Keys and sections that may change on resume, and what they affect."""

FIXED_ON_RESUME = {
    "seed": "parameters, data order and dropout depend on it",
    "data": "it determines which pairs are in which batch",
    "vocabulary": "the ids of subwords are rows of the embedding",
    "architecture": "the parameters belong to one model",
    "model": "it defines the parameters and the computation",
    "rnn": "it defines the parameters and the computation",
    "optimizer": "its moments and its schedule continue across steps",
    "python": "it stands for a module or an optimizer of the experiment",
    "training": "it defines the loss, and which updates are made",
}
"""Sections whose other keys define the experiment, and why."""

_ADVICE = {"python": "Pass the one that it began with to t2t_jax.train"}


def with_resolved_values(config: Config, *, saved: Config | None) -> Config:
    """Sets `optimizer.decay_steps=0` of a schedule that falls, and what a run chose.

    Args:
      saved: of the run, whose values are kept: those steps, and the `compute_dtype`
        that "auto" stood for. None at its first start, which takes `steps`.
    """
    steps = saved.optimizer.decay_steps if saved else 0
    if config.optimizer.decays and not config.optimizer.decay_steps:
        optimizer = replace(config.optimizer, decay_steps=steps or config.steps)
        config = replace(config, optimizer=optimizer)
    if saved and config.network.compute_dtype == "auto":
        config = config.with_network(compute_dtype=saved.network.compute_dtype)
    return config


def differences(old: Config, new: Config) -> list[tuple[str, Any, Any]]:
    """Lists the keys whose values differ, as (key, old value, new value)."""
    before, after = dict(flatten(to_dict(old))), dict(flatten(to_dict(new)))
    return [(k, before[k], after[k]) for k in before if before[k] != after[k]]


def forbidden_changes(old: Config, new: Config) -> list[str]:
    """Returns an error message for each key that may not change on resume."""
    return [
        f"{key} was {before!r} when this run began and is {after!r} now: it cannot "
        f"change on resume ({FIXED_ON_RESUME[key.split('.')[0]]}). "
        + _ADVICE.get(key.partition(".")[0], f"Set config.{key} to its old value")
        + ", or use a new workdir."
        for key, before, after in differences(old, new)
        if not {key, key.split(".")[0]} & CHANGEABLE_ON_RESUME.keys()
    ]


def require_resumable(old: Config, new: Config, *, workdir: Path) -> None:
    """Checks that a run can be resumed with another configuration.

    Raises:
      ConfigError: keys differ that cannot change. It lists them, or counts them if
        this is another experiment.
    """
    if len(changes := forbidden_changes(old, new)) > _MAX_LISTED:
        raise ConfigError(
            f"{workdir} holds another experiment: {len(changes)} keys differ, such as "
            f"{changes[0].split(' ')[0]}. Choose another workdir, or leave the config "
            "out to resume this run."
        )
    if changes:
        raise ConfigError(changes)


def require_own_checkpoint(
    path: Path, config: Config, *, step: int, meta: Mapping[str, Any]
) -> None:
    """Checks, before anything is written, that a checkpoint is of this experiment.

    Raises:
      ConfigError: `optimizer.decay_steps` differs, and the learning rate falls already.
      DataError: it is of another experiment, or has no optimizer state.
    """
    checkpoint = path / "checkpoints" / str(step)
    if "progress" not in meta:
        raise DataError(
            f"Checkpoint {checkpoint} is of a model and has no optimizer state. Pass "
            "the run that it was made from."
        )
    try:
        saved = parse(meta["config"])
    except (ConfigError, KeyError):  # Of another version: shapes are checked instead.
        return
    if changes := forbidden_changes(saved, config):
        raise DataError(
            f"{path / 'config.json'} and checkpoint {checkpoint} are of different "
            f"experiments: {len(changes)} keys differ, such as "
            f"{changes[0].split(' ')[0]}. Nothing was changed.\nRestore the run's own "
            "config.json from a copy; or move it away, and run python -m "
            "t2t_jax.main --mode=recover."
        )
    before, now = saved.optimizer, config.optimizer
    begin = min(before.decay_begin, now.decay_begin)
    if before.decay_steps != now.decay_steps and step > begin:
        raise ConfigError(
            f"optimizer.decay_steps was {before.decay_steps:,} and is "
            f"{now.decay_steps:,} now, but {checkpoint} is past step {begin:,}, where "
            "one of them begins to fall. Set config.optimizer.decay_steps to its old "
            "value, or one that begins later; or use a new workdir."
        )


def check_fingerprints(
    before: Mapping[str, str], now: Mapping[str, str], *, configs: _Configs = None
) -> None:
    """Checks that a run is resumed with its text.

    Args:
      before: the fingerprints of the run; a missing one is not compared, unless it is
        of filters, or of a glossary that it did not have.
      now: those of this start; without those of dev if evaluation is off.
      configs: of the run and of this start, for the message; None if not known.

    Raises:
      DataError: they differ.
    """
    # These had none at first.
    for name in now.keys() & {"way of filtering pairs", "way of comparing lengths"}:
        before = {name: "1", **before}
    if configs and not configs[0].data.glossary:
        before, now = ({"glossary": "", **hashes} for hashes in (before, now))
    changed = {}
    for name, was in before.items():
        # Without evaluation there is no fingerprint of the development text.
        if was != (is_now := now.get(name, was if name.endswith("dev") else None)):
            is_short = name.startswith(("weights", "languages"))
            shown = f" ({was}, now {is_now})" * is_short
            changed[name] = f"{name}{shown}"
    if changed:
        raise DataError(
            f"This run began with other content of: {', '.join(changed.values())}.\n"
            f"{_compare_specs(changed, configs)}Restore it, or use a new workdir."
        )


def _compare_specs(changed: Collection[str], configs: _Configs) -> str:
    """Returns a line on whether the specs of the changed corpora changed too."""
    if configs is None:
        return ""
    old, new = configs
    # Development pairs may be held out of the training text.
    dev = "dev" if old.data.dev or new.data.dev else "train"
    keys = dict.fromkeys(("train", "weights of train", "languages of train"), "train")
    keys |= {"dev": dev, "languages of dev": dev, "glossary": "glossary"}
    line = ""
    for name in dict.fromkeys(keys[name] for name in changed if name in keys):
        was, now = getattr(old.data, name), getattr(new.data, name)
        if absolute_spec(was, os.getcwd()) == absolute_spec(now, os.getcwd()):
            line += f" data.{name}={now!r} is unchanged, but its content is not."
        else:
            line += f" data.{name} was {was!r} and is {now!r} now."
    return f"{line[1:]}\n" if line else ""
