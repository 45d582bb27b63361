"""From the command line to `Options`: all mistakes at once, none with a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags
from ml_collections import config_flags

from t2t_jax.cli import mistakes
from t2t_jax.config import (
    Config,
    defaults,
    keys,
    parse,
    refused_on_resume,
    suggestion,
    to_dict,
)
from t2t_jax.errors import ConfigError, InputMissingError, UserError
from t2t_jax.workdir import Workdir

MODES = ("train", "evaluate", "translate", "average")

_USAGE = """\
Train, evaluate and run translation Transformers ("Attention Is All You Need").

  python -m t2t_jax.main [--config=FILE.py] [--workdir=DIR] [--mode=MODE]
                         [--config.KEY=VALUE …]

With no argument it trains the embedded English-German experiment. Modes:
  train      trains, or resumes what --workdir holds
  translate  translates stdin (or --input) to stdout (or --output)
  evaluate   scores --source against --reference, one JSON object on stdout
  average    writes the mean of several checkpoints to the directory --to
"""


_MOST_DIFFERENCES = 5


class _Flag(NamedTuple):
    default: str
    modes: tuple[str, ...]
    help: str
    needed: bool = False


_FLAGS = {
    "mode": _Flag("train", MODES, f"One of {', '.join(MODES)}."),
    "workdir": _Flag("", MODES, "Directory of the run; runs/<config> if not given."),
    "checkpoint": _Flag(
        "best", ("evaluate", "translate"), "Which to use: best, last, or a step."
    ),
    "source": _Flag("", ("evaluate",), "Source lines, plain or .gz.", needed=True),
    "reference": _Flag(
        "", ("evaluate",), "Raw reference lines, plain or .gz.", needed=True
    ),
    "input": _Flag("-", ("translate",), "File to translate; - is stdin."),
    "output": _Flag("-", ("translate",), "Where translations go; - is stdout."),
    "to": _Flag("", ("average",), "Directory of the averaged model.", needed=True),
    "last": _Flag("5", ("average",), "How many of the newest periodic checkpoints."),
    "average_steps": _Flag("", ("average",), "Their steps instead: 1000,2000,3000."),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for.

    Attributes:
      mode: one of `MODES`.
      config: of the run; in a workdir that exists, its own with the overrides.
      overrides: the `--config.KEY=VALUE`s, those of earlier commands included.
      workdir: the run's directory.
      checkpoint: `best`, `last` or a step.
      source: file of source lines (evaluate).
      reference: file of reference lines (evaluate).
      input: file to translate; `-` is stdin.
      output: where translations go; `-` is stdout.
      last: number of periodic checkpoints to average.
      average_steps: the steps to average instead, if any were named.
      to: directory of the averaged model.
    """

    mode: str
    config: Config
    overrides: dict[str, Any]
    workdir: Workdir
    checkpoint: str
    source: str
    reference: str
    input: str
    output: str
    last: int
    average_steps: tuple[int, ...]
    to: str


def usage() -> str:
    """Returns what `--help` prints."""
    described = "\n".join(
        f"  --{name:<14} {flag.help}" for name, flag in _FLAGS.items()
    )
    names = "\n".join(f"  --config.{key}={v!r}" for key, v in defaults().items())
    return (
        f"{_USAGE}\nFlags:\n  --config         The experiment, a Python file.\n"
        f"{described}\n\nKeys of the configuration, with the paper's base model as "
        f"default:\n{names}\n"
    )


def parse_argv(argv: Sequence[str]) -> Options:
    """Turns the command line (without the program's name) into `Options`.

    Raises:
      UserError: whatever the user must mend, all of it at once.
    """
    argv, config_given = _config_first(argv)
    broken: UserError | None = None
    try:
        values, rest = _read(argv)
    except Exception as error:
        broken, good = mistakes.explained(argv, error, read=_read)
        values, rest = _read(good)
    known = ["config", *_FLAGS, *(f"config.{key}" for key in keys())]
    problems = mistakes.unknown(rest, known=known) + _mode_problems(values)
    if problems:
        raise UserError([*(broken.problems if broken else ()), *problems])
    if broken:
        raise broken
    workdir = Workdir(Path(values.workdir or _default_workdir(argv)).expanduser())
    overrides = config_flags.get_override_values(values["config"])
    from_file = values.config.to_dict() if config_given else None
    if workdir.has_config:
        overrides = {**workdir.read_overrides(), **overrides}
        config = _resumed(workdir, from_file, overrides)
    else:
        config = parse(values.config.to_dict())
    named: dict[str, Any] = {name: values[name].value for name in _FLAGS}
    named["workdir"] = workdir
    named["last"] = int(values.last)
    named["average_steps"] = tuple(map(int, filter(None, _steps(values))))
    return Options(config=config, overrides=overrides, **named)


def default_config() -> Path:
    """Finds the embedded experiment, in a clone or in an installed package."""
    beside = Path(__file__).parents[2] / "configs" / "phrasebook.py"
    if beside.is_file():
        return beside
    installed = Path(__file__).parents[1] / "configs" / "phrasebook.py"
    if installed.is_file():
        return installed
    raise InputMissingError(
        "The embedded configs/phrasebook.py is not installed. Name a --config."
    )


def _read(argv: Sequence[str]) -> tuple[flags.FlagValues, list[str]]:
    """Lets absl and ml_collections read `argv`; returns what they do not know too."""
    values = flags.FlagValues()
    for name, flag in _FLAGS.items():
        flags.DEFINE_string(name, flag.default, flag.help, flag_values=values)
    line = ["t2t_jax", *argv]
    config_flags.DEFINE_config_file(
        "config", None, "The experiment.", flag_values=values, sys_argv=line
    )
    rest = values(line, known_only=True)[1:]
    values.config.lock()  # A file that could not be loaded raises only when used.
    return values, rest


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
    refused = refused_on_resume(saved, config)
    if len(refused) > _MOST_DIFFERENCES:
        raise ConfigError(
            f"--workdir={workdir.path} holds another experiment: {len(refused)} keys "
            f"differ, such as {refused[0].split(' ')[0]}. Name another --workdir, or "
            "leave --config out to go on with this one."
        )
    if refused:
        raise ConfigError(refused)
    return config


def _steps(values: flags.FlagValues) -> list[str]:
    return [step.strip() for step in values.average_steps.split(",")]


def _mode_problems(values: flags.FlagValues) -> list[str]:
    mode = values.mode
    if mode not in MODES:
        near = suggestion(mode, list(MODES))
        return [f"--mode={mode} must be one of {', '.join(MODES)}.{near}"]
    problems = []
    for name, flag in _FLAGS.items():
        if mode not in flag.modes and values[name].present:
            problems.append(
                f"--{name} belongs to --mode={' or '.join(flag.modes)}, and the mode "
                f"is {mode}. Remove it or change --mode."
            )
        if mode in flag.modes and flag.needed and not values[name].value:
            problems.append(f"--mode={mode} needs --{name}. {flag.help}")
    if not all(step.isdecimal() for step in filter(None, _steps(values))):
        problems.append(
            f"--average_steps={values.average_steps} must be whole numbers with "
            "commas between, such as 1000,2000."
        )
    if not values.last.isdecimal() or int(values.last) < 1:
        problems.append(f"--last={values.last} must be a whole number from 1.")
    return problems
