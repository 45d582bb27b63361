"""Declares the type of a flag, and parses and checks flag values."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.cli.flags.arguments import printable
from t2t_jax.distributed.cluster_env import split_address

_MAX_SHARDS = 100_000
"""Each is a file, and should take minutes to translate."""

PROTOCOLS = ("vaswani2017",)


class Flag(NamedTuple):
    """One flag beside `--config`.

    Attributes:
      default: text of the default value; "false" makes the flag a switch.
      modes: the modes that accept it.
      help: one sentence for `--help`, valid in every mode.
      needed: the modes that require it.
      unless: a switch that makes it optional there.
      rule: the name of a parser in `RULES`; "" accepts any text.
      key: the configuration key that the flag is short for.
      metavar: placeholder of the value in `--help`.
      choices: the valid values, if they are few and equal in every mode.
    """

    default: str
    modes: tuple[str, ...]
    help: str
    needed: tuple[str, ...] = ()
    unless: str = ""
    rule: str = ""
    key: str = ""
    metavar: str = "VALUE"
    choices: tuple[str, ...] = ()


def parse_value(rule: str, value: str, *, flag: str) -> Any:
    """Parses the text of a flag.

    Args:
      rule: a name in `RULES`.
      value: "" if the flag was not given.
      flag: its name, for the message.

    Raises:
      ValueError: the value is invalid.

    Example:
      >>> parse_value("steps", "1000, 2000", flag="average_steps")
      (1000, 2000)
    """
    make, must = RULES[rule]
    try:
        return make(value)
    except ValueError as error:
        raise ValueError(
            f"--{flag}={printable(value)} must be {must}. Change --{flag}."
        ) from error


def _count(value: str) -> int:
    if value and (not value.isdecimal() or int(value) < 1):
        raise ValueError
    return int(value or 0)


def _shards(value: str) -> int:
    shards = _count(value)
    if shards > _MAX_SHARDS:
        raise ValueError
    return shards


def _index(value: str) -> int | None:
    if value and not (value.isascii() and value.isdecimal()):
        raise ValueError
    return int(value) if value else None


def _path(value: str) -> str:
    if "\0" in value or any(len(os.fsencode(p)) > 255 for p in value.split("/")):
        raise ValueError
    try:
        return str(Path(value).expanduser()) if value[:1] == "~" else value
    except RuntimeError as error:
        raise ValueError from error


def _paths(value: str) -> tuple[str, ...]:
    return tuple(_path(path) for path in value.split(",") if path)


def _address(value: str) -> str:
    if value:
        split_address(value)
    return value


def _steps(value: str) -> tuple[int, ...]:
    steps = [step.strip() for step in value.split(",") if step.strip()]
    if not all(step.isdecimal() for step in steps) or bool(value) != bool(steps):
        raise ValueError
    return tuple(map(int, steps))


def _positive(value: str) -> float:
    number = float(value or 0)
    if (value and number <= 0) or not math.isfinite(number):
        raise ValueError
    return number


def _loss(value: str) -> float | None:
    if not value:
        return None
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError
    return number


def _fraction(value: str) -> float:
    fraction = float(value)
    if not 0 < fraction <= 1:
        raise ValueError
    return fraction


def _protocol(value: str) -> str:
    if value and value not in PROTOCOLS:
        raise ValueError
    return value


_PATH = "a valid path; ~user must be a user of this machine"
RULES: dict[str, tuple[Callable[[str], Any], str]] = {
    "count": (_count, "an integer from 1"),
    "shards": (_shards, f"an integer from 1 to {_MAX_SHARDS:,}"),
    "index": (_index, "an integer from 0"),
    "path": (_path, _PATH),
    "paths": (
        _paths,
        f"{_PATH}; or several, separated by commas",
    ),
    "address": (_address, "host:port, such as node-0:1234 or [::1]:1234"),
    "steps": (_steps, "integers separated by commas, such as 1000,2000"),
    "positive": (_positive, "a number above 0"),
    "loss": (_loss, "a number from 0"),
    "fraction": (_fraction, "a number above 0 and at most 1"),
    "protocol": (_protocol, f"one of {', '.join(PROTOCOLS)}"),
}
"""Rule -> (parser, description of valid values for the error)."""
