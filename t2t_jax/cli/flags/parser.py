"""Parses the command line into options, and reports all errors at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags
from ml_collections import config_flags

from t2t_jax import config_files
from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags import conflicts, diagnostics
from t2t_jax.cli.flags.arguments import Argument, CommandLine
from t2t_jax.cli.flags.modes import FLAGS, MODES, OPTIONS, flags_of
from t2t_jax.cli.flags.options import Options
from t2t_jax.config import ARCHITECTURES, Config, defaults, flatten, parse, to_dict
from t2t_jax.config_keys import alternatives
from t2t_jax.errors import ConfigError, InputMissingError, UserError
from t2t_jax.run.initial_model import adopt_model
from t2t_jax.run.resume_rules import require_resumable
from t2t_jax.run.workdir import Workdir

_PARSERS: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: flags.BooleanParser().parse,
}


def parse_argv(argv: Sequence[str]) -> Options:
    """Parses the command line (without the program's name) into options of its mode.

    Raises:
      UserError: with all errors of the command line.
    """
    line = diagnostics.read_line(argv)
    command = _read_command(line)
    mode, given = command.mode, command.flags
    named: dict[str, Any] = {
        name: flag.parse(given.get(name, flag.default), name=name, mode=mode)
        for name, flag in flags_of(mode).items()
        if not flag.key
    }
    named["workdir"] = workdir = Workdir(
        Path(named.get("workdir") or _default_workdir(command.path))
    )
    workdir.require_valid_path()
    config, overrides = _configure(command, workdir)
    _check_overrides_used(config, overrides)
    if unused := conflicts.unused_flags(given, config):
        raise UserError(unused)
    values = dict(flatten(to_dict(config)))
    named |= {n: values[flag.key] for n, flag in flags_of(mode).items() if flag.key}
    cls = OPTIONS[mode]
    return cls(
        config=config,
        overrides=overrides,
        config_given=command.config_given,
        workdir_given="workdir" in given,
        **{f.name: named[n] for f in fields(cls) if (n := f.name.rstrip("_")) in named},
    )


def default_config() -> Path:
    """Returns the path of the embedded experiment."""
    return config_files.shipped_directory() / "phrasebook.py"


class _Command(NamedTuple):
    """A command line without errors of flags.

    Attributes:
      flags: the texts of the given flags.
      path: of the configuration, with `:ROW`.
      values: of the configuration, with overrides.
    """

    mode: str
    flags: dict[str, str]
    path: str
    config_given: bool
    values: dict[str, Any]
    overrides: dict[str, Any]


def _read_command(line: CommandLine) -> _Command:
    """Reads all flags, and loads the configuration."""
    word = line.leading if line.leading in MODES else ""
    mode = word or line.last("mode") or ""
    faults, good = diagnostics.find_faults(line, mode=mode)
    problems = [
        *diagnostics.conflicting_modes(word, line.last("mode")),
        *diagnostics.explain_stray_words(line, mode=mode),
    ]
    kind: type[UserError] = ConfigError
    if problems or not all(fault.is_config for fault in faults):
        kind = UserError
    problems += dict.fromkeys(fault.message for fault in faults)
    given = {flag.name: flag.value or "" for flag in good if flag.name in FLAGS}
    keys = [flag for flag in good if flag.name.startswith("config.")]
    config = line.last("config")
    short, contradictions = _short_forms(given, keys)
    problems += contradictions
    try:
        path = config_files.resolve(config) if config else str(default_config())
        values, overrides = _load(path, [*keys, *short])
    except UserError as error:
        raise (kind if problems else type(error))(
            [*problems, *error.problems]
        ) from error
    mode = mode or FLAGS["mode"].default
    others = conflicts.flag_errors(mode, given, has_config=bool(config))
    others += conflicts.unused_config(mode, [*keys, *short], config or "")
    if problems or others:
        raise (UserError if others else kind)([*problems, *others])
    if config and (row := config_files.default_row(path)):
        log(f"--config={config} has several rows. This is {config}:{row}.")
    return _Command(mode, given, path, bool(config), values, overrides)


def _load(
    path: str, given: Sequence[Argument]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Loads the values of a configuration file, and those of the given keys."""
    values = flags.FlagValues()
    line = ["t2t_jax", f"--config={path}", *map(str, given)]
    # ml_collections would load a second file of this process into the same module.
    sys.modules.pop("config_config", None)
    config_flags.DEFINE_config_file(
        "config", None, "The experiment.", flag_values=values, sys_argv=line
    )
    try:
        values(line)
        values.config.lock()  # A file that could not be loaded raises only when used.
    except (Exception, SystemExit) as error:
        raise config_files.explain_load_failure(path, error) from error
    return values.config.to_dict(), config_flags.get_override_values(values["config"])


def _short_forms(
    given: Mapping[str, str], keys: Sequence[Argument]
) -> tuple[list[Argument], list[str]]:
    """Returns the keys that the short flags set, and errors where a key has another."""
    explicit = {key.name: key.value or "" for key in keys}
    found, problems = [], []
    for name, text in given.items():
        if not (key := FLAGS[name].key):
            continue
        found.append(Argument(f"config.{key}", text, f"--{name}"))
        parse = _PARSERS.get(type(defaults()[key]), str)
        if parse(explicit.get(f"config.{key}", text)) != parse(text):
            problems.append(
                f"--{name} is short for --config.{key}, and the two have different "
                "values. Pass one of them."
            )
    return found, problems


def _default_workdir(config: str) -> str:
    path, _, row = config.partition(":")
    return f"runs/{Path(path).stem}" + (f"_{row}" if row else "")


def _configure(command: _Command, workdir: Workdir) -> tuple[Config, dict[str, Any]]:
    """Returns the configuration, and the overrides.

    For an existing run, these include the overrides of earlier commands. A `--config`
    may differ from that of the run only in keys that may change on resume.
    """
    if not OPTIONS[command.mode].reads_config:
        return parse(command.values), command.overrides
    try:
        return _configure_existing(command, workdir)
    except UserError as error:
        if not isinstance(error, ConfigError):
            _require_own(workdir, error)
        raise


def _require_own(workdir: Workdir, cause: UserError | None = None) -> None:
    """Raises an error if the workdir is a model of another toolkit."""
    if not workdir.path.exists():
        return
    from t2t_jax.exchange.importing.importer import explain_foreign

    if advice := explain_foreign(workdir.path):
        raise InputMissingError(
            f"--workdir={workdir.path} is not a run or a model of t2t_jax. {advice}"
        ) from cause


def _configure_existing(
    command: _Command, workdir: Workdir
) -> tuple[Config, dict[str, Any]]:
    workdir.require_complete()
    if command.mode == "describe" and "workdir" in command.flags:
        _require_run(workdir, config_given=command.config_given)
    if not workdir.has_config:
        _require_own(workdir)
        chosen = command.overrides
        return parse(adopt_model(command.values, saved=None, chosen=chosen)), chosen
    overrides = {**workdir.read_overrides(), **command.overrides}
    saved = workdir.read_config()
    values = to_dict(saved)
    if command.config_given:
        values = adopt_model(command.values, saved=saved, chosen=overrides)
    for key, value in overrides.items():
        section, _, name = key.rpartition(".")
        (values[section] if section else values)[name] = value
    config = parse(values)
    require_resumable(saved, config, workdir=workdir.path)
    return config, overrides


def _require_run(workdir: Workdir, *, config_given: bool) -> None:
    """Checks that the run to describe exists; a configuration alone needs none."""
    if config_given and not (workdir.path.exists() and not workdir.path.is_dir()):
        return
    try:
        workdir.require()
    except UserError as error:
        raise type(error)([f"--workdir={p}" for p in error.problems]) from error


def _check_overrides_used(config: Config, overrides: dict[str, Any]) -> None:
    """Refuses overrides of another architecture's sections."""
    used = ARCHITECTURES[config.architecture]
    others = set(ARCHITECTURES.values()) - {used}
    unused = [key for key in overrides if key.partition(".")[0] in others]
    if unused:
        named = alternatives([f"config.{key}" for key in unused], word="and")
        raise ConfigError(
            f"architecture={config.architecture!r} does not use {named}. Remove the "
            "flags, or set config.architecture."
        )
