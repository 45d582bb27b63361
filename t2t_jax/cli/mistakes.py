"""Finds out what was wrong with a command line, and says it in a line each.

absl and ml_collections stop at the first mistake, with a traceback. Here each
argument is read again by itself, so that all mistakes are named at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import flags

from t2t_jax.config import keys, suggestion
from t2t_jax.config_files import config_file_error
from t2t_jax.errors import ConfigError, InputMissingError, UserError


def explained(
    argv: Sequence[str], error: Exception, *, read: Callable[[Sequence[str]], object]
) -> tuple[UserError, list[str]]:
    """Turns the failure to read `argv` into an error that names every mistake.

    Args:
      argv: arguments; the first is `--config=FILE`.
      error: what reading all of them raised.
      read: reads arguments; raises if there is something wrong with one.

    Returns:
      The error, and the arguments without those that it is about.

    Raises:
      UserError: the config file cannot be loaded, so nothing else can be judged.
    """
    try:
        read(argv[:1])
    except Exception as broken:
        raise _broken_file(argv[0].partition("=")[2], broken) from broken
    problems: list[str] = []
    good = list(argv[:1])
    of_config = True
    for group in _groups(argv[1:]):
        try:
            read([argv[0], *group])
            good += group
        except Exception as broken:
            problems.append(_broken_argument(group, broken))
            of_config &= group[0].lstrip("-").startswith("config.")
    if not problems:  # Only together are they wrong.
        return UserError(str(error).strip().splitlines()[-1]), good[:1]
    return (ConfigError if of_config else UserError)(problems), good


def require_config_file(path: str) -> None:
    """Checks that `--config` names a file, before it is executed.

    Args:
      path: the value of the flag.

    Raises:
      InputMissingError: there is none; a pipe would be waited for.
    """
    name = path.partition(":")[0]
    if not name or not os.path.isfile(name):
        kind = "it is not a file" if os.path.lexists(name) else "there is none"
        raise InputMissingError(
            f"--config={name} must be a Python file, and {kind}. "
            "Paths are relative to the working directory."
        )


def unknown(rest: Sequence[str], *, known: list[str]) -> list[str]:
    """Says what is wrong with the arguments that no flag took."""
    problems = []
    for argument in rest:
        name = argument.lstrip("-").split("=")[0]
        if argument.startswith("-") and name:
            near = suggestion(name, known).replace("mean ", "mean --")
            problems.append(f"There is no flag --{name}.{near}")
        else:
            problems.append(
                f"Every argument is a flag (--name=value), and {argument!r} is not. "
                "Remove it; --help lists the flags."
            )
    return problems


def _groups(argv: Sequence[str]) -> list[list[str]]:
    """Puts each flag together with the value that follows it, if one does."""
    groups: list[list[str]] = []
    for argument in argv:
        if argument.startswith("-") or not groups:
            groups.append([argument])
        else:
            groups[-1].append(argument)
    return groups


def _broken_file(path: str, error: Exception) -> UserError:
    """Says why a config file cannot be loaded."""
    name = path.partition(":")[0]
    if not name or not Path(name).is_file():
        return InputMissingError(
            f"--config={name} must be a Python file, and there is none. "
            "Paths are relative to the working directory."
        )
    return config_file_error(path, error)


def _broken_argument(group: Sequence[str], error: Exception) -> str:
    """Says what is wrong with one flag and its value."""
    name, _, value = group[0].lstrip("-").partition("=")
    value = value or " ".join(group[1:])
    if not name.startswith("config."):
        return str(error).strip().splitlines()[-1]
    key = name.removeprefix("config.")
    if isinstance(error, flags.IllegalFlagValueError):
        wanted = str(error).strip().splitlines()[-1].rpartition(f"={value}: ")[2]
        return f"--config.{key}={value} has the wrong type: {wanted}"
    if key not in keys():
        return f"There is no key config.{key}.{suggestion(key, keys())}"
    return f"--config.{key}={value}: {str(error).strip().splitlines()[0]}"
