"""Parses the command line into options, and reports all errors at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax import config_files
from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags.arguments import check, parse_key, split
from t2t_jax.cli.flags.modes import FLAGS, MODES, flag_help, flags_of, modes_of
from t2t_jax.cli.flags.options import (
    OPTIONS,
    SAMPLING_FLAGS,
    Options,
    RunOptions,
    takes_keys,
)
from t2t_jax.config import (
    ARCHITECTURES,
    Config,
    alternatives,
    did_you_mean,
    flatten,
    parse,
    set_keys,
    to_dict,
)
from t2t_jax.errors import ConfigError, InputMissingError, UserError, rewording
from t2t_jax.run.first_start import adopt_model
from t2t_jax.run.resume_rules import require_resumable, with_resolved_values
from t2t_jax.run.workdir import Workdir, runs_near, suggest_runs

_MAX_RUNS = 5


def parse_argv(argv: Sequence[str]) -> Options:
    """Parses the command line (without the program's name) into options of its mode.

    Raises:
      UserError: with all errors of the command line.
    """
    command = _read_command(argv)
    mode, given, named = command.mode, command.given, command.named
    file, _, row = command.path.partition(":")
    default = f"runs/{Path(file).stem}" + (f"_{row}" if row else "")
    workdir = Workdir(Path(named.get("workdir") or default))
    workdir.require_valid_path()
    config, overrides = _configure(command, workdir)
    _require_used(config, overrides, given=given)
    values = dict(flatten(to_dict(config)))
    named |= {n: values[flag.key] for n, flag in flags_of(mode).items() if flag.key}
    named |= {
        "workdir": workdir,
        "workdir_given": "workdir" in given,
        "config": config,
        "config_given": command.config_given,
        "overrides": overrides,
    }
    # `from` is a keyword, so its field is `from_`.
    names = {f.name: f.name.rstrip("_") for f in fields(OPTIONS[mode])}
    return OPTIONS[mode](**{f: named[n] for f, n in names.items() if n in named})


class _Command(NamedTuple):
    """A command line without errors of flags.

    Attributes:
      given: the texts of the given flags.
      named: the values of all flags of the mode, by name.
      path: of the configuration, with `:ROW`.
      values: of the configuration, with overrides.
      overrides: key -> value.
    """

    mode: str
    given: dict[str, str]
    named: dict[str, Any]
    path: str
    config_given: bool
    values: dict[str, Any]
    overrides: dict[str, Any]


def _read_command(argv: Sequence[str]) -> _Command:
    """Reads all flags, and loads the configuration."""
    line = split(argv)
    valid, errors = check(line)
    mode, config = line.mode or FLAGS["mode"].default, line.last("config")
    given = {flag.name: flag.value or "" for flag in valid if flag.name in FLAGS}
    overrides = {
        key: parse_key(key, flag.value or "")
        for flag in valid
        if (key := flag.name.removeprefix("config.")) != flag.name
    }
    named: dict[str, Any] = {}
    problems = [*_short_forms(given, into=overrides)]
    problems += _flag_problems(mode, given, has_config=bool(config), into=named)
    if mode in MODES and not takes_keys(mode) and (config or overrides):
        names = [f"--config.{key}" for key in overrides] + ["--config"] * bool(config)
        refused = alternatives(names, word="and")
        problems.append(f"--mode={mode} takes no configuration. Leave {refused} out.")
    errors += map(UserError, problems)
    try:
        path = config_files.resolve(config or "phrasebook")
        values = config_files.load(path).to_dict()
    except UserError as error:
        errors.append(error)
    if errors:
        kinds = {type(error) for error in errors}
        kind = kinds.pop() if len(kinds) == 1 else UserError
        messages = [message for error in errors for message in error.problems]
        raise kind(dict.fromkeys(messages)) from errors[-1]
    if config and (row := config_files.default_row(path)):
        log(f"--config={config} has several rows. This is {config}:{row}.")
    set_keys(values, overrides)
    return _Command(mode, given, named, path, bool(config), values, overrides)


def _short_forms(given: Mapping[str, str], *, into: dict[str, Any]) -> Iterator[str]:
    """Sets the keys of short flags; yields an error where a key has another value."""
    for name, text in given.items():
        if key := FLAGS[name].key:
            value = parse_key(key, text)
            if into.setdefault(key, value) != value:
                yield f"--{name} is short for --config.{key}; they differ. Pass one."


def _flag_problems(
    mode: str, given: Mapping[str, str], *, has_config: bool, into: dict[str, Any]
) -> Iterator[str]:
    """Yields the errors of all flags, without the configuration.

    Args:
      given: the texts of the flags that were given.
      has_config: whether `--config` was given.
      into: gets the values of all flags of the mode.
    """
    if mode not in MODES:
        near = did_you_mean(mode, list(MODES))
        yield f"--mode={mode} must be one of {', '.join(MODES)}.{near}"
        return
    own = flags_of(mode)
    for name in [name for name in given if name not in {*own, "mode"}]:
        others = alternatives([*modes_of(name)])
        yield (
            f"--mode={mode} does not take --{name}, which only --mode={others} has. "
            "Choose another mode, or remove the flag."
        )
    for name, flag in own.items():
        # With --config the default is runs/NAME of that configuration, as in training.
        if not (name == "workdir" and has_config):
            yield from _relation_problems(name, mode, given)
        try:
            into[name] = flag.parse(given.get(name, flag.default), name=name, mode=mode)
        except ValueError as error:
            yield str(error)


def _relation_problems(name: str, mode: str, given: Mapping[str, str]) -> Iterator[str]:
    """Yields errors if a flag is missing, or others that it requires or excludes."""
    flag = flags_of(mode)[name]
    others = (other.partition("=") for other in flag.unless.split())
    spared = any(
        given.get(other) == value if value else given.get(other, "false") != "false"
        for other, _, value in others
    )
    if flag.required and not given.get(name) and not spared:
        words = f" One of {', '.join(flag.choices)}." if flag.choices else ""
        yield (
            f"--mode={mode} requires --workdir, the run to use. {_runs_hint()}"
            if name == "workdir"
            else f"--mode={mode} requires --{name}. {flag_help(name, mode)}{words}"
        )
    for needed in flag.requires.split() if name in given else ():
        required, _, values = needed.partition("=")
        text = given.get(required, "")
        if not text or (values and text not in values.split("|")):
            needed = needed.replace("|", " or ")
            yield f"--{name} requires --{needed} with --mode={mode}. Pass both or none."
    for other in flag.excludes.split() if name in given else ():
        if other in given:
            yield f"--{name} and --{other} are mutually exclusive. Pass one."


def _runs_hint() -> str:
    """Lists the runs to pass as `--workdir`."""
    runs = runs_near(Path("runs"))
    if not runs:
        return "Train first, or pass the --workdir of a run."
    named = ", ".join(str(run) for run in runs[:_MAX_RUNS])
    more = f" and {len(runs) - _MAX_RUNS} more" if len(runs) > _MAX_RUNS else ""
    return f"Pass --workdir={runs[0]} or another. Runs, newest first: {named}{more}."


def _configure(command: _Command, workdir: Workdir) -> tuple[Config, dict[str, Any]]:
    """Returns the configuration, and the overrides.

    For an existing run, these include the overrides of earlier commands. A `--config`
    may differ from that of the run only in keys that may change on resume.
    """
    if not OPTIONS[command.mode].reads_config:
        return parse(command.values), command.overrides
    flags = {"workdir": workdir}
    if first := str(command.values.get("init_from", "")):
        flags["config.init_from"] = Workdir(Path(first))
    with explaining_foreign(flags):
        return _combine(command, workdir)


@contextmanager
def explaining_foreign(flags: Mapping[str, Workdir]) -> Iterator[None]:
    """Refuses, where something fails, a directory that is a model of another toolkit.

    Args:
      flags: name of a flag or key -> the directory that it names.

    Raises:
      InputMissingError: it is one, and reading it has failed.
    """
    try:
        yield
    except ConfigError:
        raise
    except UserError as error:
        for flag, workdir in flags.items():
            _require_own(workdir, error, flag=flag)
        raise


def _require_own(
    workdir: Workdir, cause: UserError | None = None, *, flag: str = "workdir"
) -> None:
    """Raises an InputMissingError if a workdir is a model of another toolkit."""
    if not workdir.path.exists():
        return
    from t2t_jax.exchange.importing.importer import explain_foreign

    if advice := explain_foreign(workdir.path):
        raise InputMissingError(
            f"--{flag}={workdir.path} is not a run or a model of t2t_jax. {advice}"
        ) from cause


def _combine(command: _Command, workdir: Workdir) -> tuple[Config, dict[str, Any]]:
    workdir.require_complete()
    is_file = workdir.path.exists() and not workdir.path.is_dir()
    if command.mode == "describe" and "workdir" in command.given:
        if is_file or not command.config_given:  # a configuration alone needs no run
            with rewording(lambda problem: f"--workdir={problem}"):
                workdir.require()
    if not workdir.has_config:
        _require_own(workdir)
        chosen = command.overrides
        is_named = workdir.path.name == Path(command.path).stem  # as the demo's
        if not (is_named or command.config_given or "data.train" in chosen):
            if not issubclass(OPTIONS[command.mode], RunOptions):
                _announce_phrasebook(workdir)
        config = parse(adopt_model(command.values, saved=None, chosen=chosen))
        return with_resolved_values(config, saved=None), chosen
    overrides = {**workdir.read_overrides(), **command.overrides}
    saved = workdir.read_config()
    values = to_dict(saved)
    if command.config_given:
        values = adopt_model(command.values, saved=saved, chosen=overrides)
    config = with_resolved_values(parse(set_keys(values, overrides)), saved=saved)
    require_resumable(saved, config, workdir=workdir.path)
    return config, overrides


def _announce_phrasebook(workdir: Workdir) -> None:
    """Says which run begins in a new workdir, which may be misspelt.

    Raises:
      InputMissingError: the directory has other files than those of a run.
    """
    if workdir.has_other_files:
        workdir.refuse("a run", "Pass --config to begin one there, or another workdir.")
    what = f"{workdir.path} is a new run: without --config, of the phrasebook."
    log(f"{what}{suggest_runs(workdir.path)}")


def _require_used(
    config: Config, overrides: Mapping[str, Any], *, given: Mapping[str, str]
) -> None:
    """Refuses overrides of another architecture, and sampling flags without sampling.

    Args:
      given: the flags that were given.
    """
    sections = set(ARCHITECTURES.values()) - {ARCHITECTURES[config.architecture]}
    unused = [f"config.{key}" for key in overrides if key.partition(".")[0] in sections]
    if unused:
        raise ConfigError(
            f"architecture={config.architecture!r} does not use "
            f"{alternatives(unused, word='and')}. Remove them."
        )
    unused = [f"--{name}" for name in SAMPLING_FLAGS if name in given]
    if unused and not config.decoding.sample:
        raise UserError(
            f"Without --sample no mode uses {alternatives(unused, word='and')}. Pass "
            "--sample, or leave them out."
        )
