"""From the command line to `Options`: all mistakes at once, none with a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import config_flags

from t2t_jax.cli import combinations, mistakes
from t2t_jax.cli.modes import WITHOUT_RUN
from t2t_jax.cli.options import FLAGS, Options
from t2t_jax.config import ARCHITECTURES, Config, keys, parse, to_dict
from t2t_jax.config_files import shipped_configs
from t2t_jax.differences import require_resumable
from t2t_jax.errors import ConfigError, InputMissingError, UserError
from t2t_jax.workdir import Workdir

WORDS = {"config.training.micro_batches": {"auto": "0"}}
"""The words that some flags take in the place of a number."""


def parse_argv(argv: Sequence[str]) -> Options:
    """Turns the command line (without the program's name) into `Options`.

    Raises:
      UserError: whatever the user must mend, all of it at once.
    """
    argv, config_given = _config_first(spelled_out(argv))
    mistakes.require_config_file(argv[0].partition("=")[2])
    values, rest, broken = _readable(argv)
    problems = []
    if long_forms := _long_forms(values):
        typed = _overrides(values)
        values, rest, broken = _readable([*argv, *long_forms])
        problems += _contradictions(typed, _overrides(values))
    known = ["config", *FLAGS, *(f"config.{key}" for key in keys())]
    problems += mistakes.unknown(rest, known=known) + combinations.problems(values)
    if problems:
        raise UserError([*(broken.problems if broken else ()), *problems])
    if broken:
        raise broken
    workdir = Workdir(
        Path(combinations.value("workdir", values) or _default_workdir(argv))
    )
    overrides = _overrides(values)
    from_file = values.config.to_dict() if config_given else None
    workdir.require_name()
    if values.mode not in WITHOUT_RUN:
        workdir.require_whole()
    if workdir.has_config and values.mode not in WITHOUT_RUN:
        overrides = {**workdir.read_overrides(), **overrides}
        config = _resumed(workdir, from_file, overrides)
    else:
        config = parse(values.config.to_dict())
    _require_built(config, overrides)
    if unused := combinations.ignored(values, config):
        raise UserError(unused)
    named: dict[str, Any] = {
        name: combinations.value(name, values)
        for name, flag in FLAGS.items()
        if not flag.key
    }
    named["workdir"] = workdir
    named["config_given"] = config_given
    return Options(config=config, overrides=overrides, **named)


def default_config() -> Path:
    """Finds the embedded experiment, in a clone or in an installed package."""
    shipped = shipped_configs()
    if "phrasebook" not in shipped:
        raise InputMissingError(
            "The embedded configs/phrasebook.py is not installed. Name a --config."
        )
    return shipped["phrasebook"]


def _read(argv: Sequence[str]) -> tuple[flags.FlagValues, list[str]]:
    """Lets absl and ml_collections read `argv`; returns what they do not know too."""
    values = flags.FlagValues()
    for name, flag in FLAGS.items():
        if flag.default == "false":
            flags.DEFINE_boolean(name, False, flag.help, flag_values=values)
        else:
            flags.DEFINE_string(name, flag.default, flag.help, flag_values=values)
    line = ["t2t_jax", *argv]
    config_flags.DEFINE_config_file(
        "config", None, "The experiment.", flag_values=values, sys_argv=line
    )
    rest = values(line, known_only=True)[1:]
    values.config.lock()  # A file that could not be loaded raises only when used.
    return values, rest


def _readable(
    argv: Sequence[str],
) -> tuple[flags.FlagValues, list[str], UserError | None]:
    """Reads what can be read of `argv`; the error is about the rest."""
    try:
        return *_read(argv), None
    except Exception as error:
        broken, good = mistakes.explained(argv, error, read=_read)
        return *_read(good), broken


def _overrides(values: flags.FlagValues) -> dict[str, Any]:
    typed: dict[str, Any] = config_flags.get_override_values(values["config"])
    return typed


def _long_forms(values: flags.FlagValues) -> list[str]:
    """Writes the flags that stand for a key as that key."""
    return [
        f"--config.{flag.key}={values[name].value}"
        for name, flag in FLAGS.items()
        if flag.key and values[name].present
    ]


def _contradictions(typed: dict[str, Any], meant: dict[str, Any]) -> list[str]:
    """Finds keys that were given twice, once by their short form, and differ."""
    return [
        f"--{name} is short for --config.{flag.key}, and the two are given with "
        "different values. Give one."
        for name, flag in FLAGS.items()
        if flag.key in typed and typed[flag.key] != meant.get(flag.key)
    ]


def spelled_out(argv: Sequence[str]) -> list[str]:
    """Puts numbers in the place of the words that stand for them in `WORDS`.

    Example:
      >>> spelled_out(["--config.training.micro_batches=auto", "--mode=train"])
      ['--config.training.micro_batches=0', '--mode=train']
    """
    argv = list(argv)
    for i, argument in enumerate(argv):
        name, equals, value = argument.partition("=")
        words = WORDS.get(name.lstrip("-"), {}) if name.startswith("-") else {}
        if value in words:
            argv[i] = f"{name}={words[value]}"
        elif not equals and i + 1 < len(argv):
            argv[i + 1] = words.get(argv[i + 1], argv[i + 1])
    return argv


def _config_first(argv: Sequence[str]) -> tuple[list[str], bool]:
    """Puts `--config=FILE` first, adding it where it is not there."""
    argv = list(argv)
    for i, argument in enumerate(argv):
        name, equals, path = argument.lstrip("-").partition("=")
        if name != "config" or not argument.startswith("-"):
            continue
        length = 1
        if not equals:
            path = argv[i + 1] if i + 1 < len(argv) else ""
            length = 2
        return [f"--config={path}", *argv[:i], *argv[i + length :]], True
    return [f"--config={default_config()}", *argv], False


def _default_workdir(argv: Sequence[str]) -> str:
    path, _, row = argv[0].partition("=")[2].partition(":")
    return f"runs/{Path(path).stem}" + (f"_{row}" if row else "")


def _resumed(
    workdir: Workdir, from_file: dict[str, Any] | None, overrides: dict[str, Any]
) -> Config:
    """Applies the rule that where a run exists its own configuration is the base.

    Where a `--config` is given all the same, it must be the run's but for what may
    change: the overrides of the commands before still hold.
    """
    saved = workdir.read_config()
    values = to_dict(saved) if from_file is None else from_file
    for key, value in overrides.items():
        section, _, name = key.rpartition(".")
        (values[section] if section else values)[name] = value
    config = parse(values)
    require_resumable(saved, config, workdir=workdir.path)
    return config


def _require_built(config: Config, overrides: dict[str, Any]) -> None:
    """Refuses settings of the model that the architecture does not build."""
    unused = [
        key
        for key in overrides
        for architecture, section in ARCHITECTURES.items()
        if architecture != config.architecture and key.startswith(f"{section}.")
    ]
    if unused:
        raise ConfigError(
            f"config.{key} changes nothing with architecture={config.architecture!r}. "
            "Remove it, or change config.architecture."
            for key in unused
        )
