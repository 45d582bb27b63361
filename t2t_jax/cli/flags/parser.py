"""Parses the command line into `Options`, and reports all errors at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import config_flags

from t2t_jax import config_files
from t2t_jax.cli.flags import conflicts, diagnostics
from t2t_jax.cli.flags.arguments import Argument, CommandLine, split
from t2t_jax.cli.flags.modes import MODES, WITHOUT_RUN
from t2t_jax.cli.flags.options import FLAGS, Options
from t2t_jax.config import ARCHITECTURES, Config, defaults, parse, to_dict
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.run.resume_rules import require_resumable
from t2t_jax.run.workdir import Workdir


def parse_argv(argv: Sequence[str]) -> Options:
    """Parses the command line (without the program's name) into `Options`.

    Raises:
      UserError: with all errors of the command line.
    """
    line = read_line(argv)
    values, config = _read_values(line)
    workdir = Workdir(
        Path(conflicts.flag_value("workdir", values) or _default_workdir(config))
    )
    workdir.require_valid_path()
    overrides = _overrides(values)
    config_given = bool(line.last("config"))
    from_file = values.config.to_dict() if config_given else None
    reads_run = values.mode not in WITHOUT_RUN
    if reads_run:
        workdir.require_complete()
    if values.mode == "describe" and line.last("workdir"):
        _require_run(workdir, config_given=config_given)
    if reads_run and workdir.has_config:
        overrides = {**workdir.read_overrides(), **overrides}
        parsed = _run_config(workdir, from_file, overrides)
    else:
        parsed = parse(values.config.to_dict())
    _check_overrides_used(parsed, overrides)
    if unused := conflicts.unused_flags(values, parsed):
        raise UserError(unused)
    named: dict[str, Any] = {
        name: conflicts.flag_value(name, values)
        for name, flag in FLAGS.items()
        if not flag.key
    }
    named["workdir"] = workdir
    named["config_given"] = config_given
    return Options(config=parsed, overrides=overrides, **named)


def read_line(argv: Sequence[str]) -> CommandLine:
    """Splits a command line into a mode, flags and stray words."""
    switches = ["version"]
    switches += [name for name, flag in FLAGS.items() if flag.default == "false"]
    switches += [
        f"config.{key}" for key, value in defaults().items() if isinstance(value, bool)
    ]
    line = split(argv, switches=switches)
    return line._replace(flags=[_expand_keywords(flag) for flag in line.flags])


def default_config() -> Path:
    """Returns the path of the embedded experiment."""
    return config_files.shipped_directory() / "phrasebook.py"


def _read_values(line: CommandLine) -> tuple[flags.FlagValues, str]:
    """Reads all flags; returns their values, and the path of the configuration."""
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
    problems += diagnostics.messages(faults)
    if word:
        good.append(Argument("mode", word, "--mode"))
    # Short forms are read again as their keys, so that the two can be compared.
    spelled = [flag for flag in good if flag.name != "config"]
    given = line.last("config")
    try:
        path = config_files.resolve(given) if given else str(default_config())
        values = _load(path, spelled)
    except UserError as error:
        raise (kind if problems else type(error))(
            [*problems, *error.problems]
        ) from error
    typed = _overrides(values)
    if long_forms := _long_forms(values):
        values = _load(path, [*spelled, *long_forms])
        problems += _contradictions(typed, _overrides(values))
    others = conflicts.flag_errors(values, has_config=bool(given))
    if problems or others:
        raise (UserError if others else kind)([*problems, *others])
    return values, path


def _load(path: str, given: Sequence[Argument]) -> flags.FlagValues:
    """Reads a configuration file and checked flags by absl and ml_collections."""
    values = flags.FlagValues()
    for name, flag in FLAGS.items():
        if flag.default == "false":
            flags.DEFINE_boolean(name, False, flag.help, flag_values=values)
        else:
            flags.DEFINE_string(name, flag.default, flag.help, flag_values=values)
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
    return values


def _overrides(values: flags.FlagValues) -> dict[str, Any]:
    typed: dict[str, Any] = config_flags.get_override_values(values["config"])
    return typed


def _long_forms(values: flags.FlagValues) -> list[Argument]:
    """Returns the keys that the given short flags set."""
    return [
        Argument(f"config.{flag.key}", str(values[name].value), f"--{name}")
        for name, flag in FLAGS.items()
        if flag.key and values[name].present
    ]


def _contradictions(typed: dict[str, Any], meant: dict[str, Any]) -> list[str]:
    """Lists keys that were set to another value by their short flag."""
    return [
        f"--{name} is short for --config.{flag.key}, and the two have different "
        "values. Pass one of them."
        for name, flag in FLAGS.items()
        if flag.key in typed and typed[flag.key] != meant.get(flag.key)
    ]


def _expand_keywords(flag: Argument) -> Argument:
    """Replaces a keyword of `KEYWORD_VALUES` by its number."""
    words = diagnostics.KEYWORD_VALUES.get(flag.name, {})
    return flag._replace(value=words.get(flag.value or "", flag.value))


def _default_workdir(config: str) -> str:
    path, _, row = config.partition(":")
    return f"runs/{Path(path).stem}" + (f"_{row}" if row else "")


def _run_config(
    workdir: Workdir, from_file: dict[str, Any] | None, overrides: dict[str, Any]
) -> Config:
    """Returns the configuration of an existing run, with overrides.

    A `--config` may differ from it only in keys that may change on resume; overrides
    of earlier commands still apply.
    """
    saved = workdir.read_config()
    values = to_dict(saved) if from_file is None else from_file
    for key, value in overrides.items():
        section, _, name = key.rpartition(".")
        (values[section] if section else values)[name] = value
    config = parse(values)
    require_resumable(saved, config, workdir=workdir.path)
    return config


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
        named = diagnostics.join_names([f"config.{key}" for key in unused])
        raise ConfigError(
            f"{named} {'has' if len(unused) == 1 else 'have'} no effect with "
            f"architecture={config.architecture!r}. Remove the flag, or set "
            "config.architecture."
        )
