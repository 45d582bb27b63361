"""Declares what a flag is, and the types of flags, which parse and check values."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from t2t_jax.cli.flags.arguments import printable
from t2t_jax.distributed.cluster_env import split_address

_MAX_SHARDS = 100_000
"""Each is a file, and should take minutes to translate."""


class FlagType(NamedTuple):
    """The type of a flag's value.

    Attributes:
      parse: from text; "" if the flag was not given. Raises ValueError.
      valid: describes the valid values.
      metavar: placeholder of the value in `--help`.
      may_be_empty: whether `--FLAG=` is valid.
    """

    parse: Callable[[str], Any]
    valid: str
    metavar: str
    may_be_empty: bool = True


def _switch(value: str) -> bool:
    return bool(value) and bool(flags.BooleanParser().parse(value))


def _count(value: str, *, most: float = math.inf) -> int:
    if value and not (value.isdecimal() and 1 <= int(value) <= most):
        raise ValueError
    return int(value or 0)


def _index(value: str) -> int | None:
    if value and not (value.isascii() and value.isdecimal()):
        raise ValueError
    return int(value) if value else None


def _port(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and int(value[:6]) < 1 << 16):
        raise ValueError
    return int(value)


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


def _percent(value: str) -> float:
    if not value:
        return 0.0
    number, sign, rest = value.partition("%")
    if not sign or rest or not 0 < float(number) < 100:
        raise ValueError
    return float(number) / 100


def _languages(value: str) -> tuple[str, str] | None:
    if not value:
        return None
    source, target = value.split(",")
    if not all(_LANGUAGE.fullmatch(code) for code in (source, target)):
        raise ValueError
    return source, target


def _license(value: str) -> str:
    if value and not _LICENSE.fullmatch(value):
        raise ValueError
    return value


_LANGUAGE = re.compile("[a-z]{2,3}([_-][A-Za-z]+)?")
_LICENSE = re.compile("[a-z0-9]+([.-][a-z0-9]+)*")
_A_PATH = "a valid path; ~user must be a user of this machine"

TEXT = FlagType(str, "text", "VALUE")
SWITCH = FlagType(_switch, "true or false", "")
COUNT = FlagType(_count, "an integer from 1", "N")
SHARDS = FlagType(
    partial(_count, most=_MAX_SHARDS), f"an integer from 1 to {_MAX_SHARDS:,}", "N"
)
INDEX = FlagType(_index, "an integer from 0", "I")
FILE = FlagType(_path, _A_PATH, "FILE", may_be_empty=False)
DIRECTORY = FILE._replace(metavar="DIR")
PATHS = FlagType(_paths, f"{_A_PATH}; or several, separated by commas", "DIRS")
ADDRESS = FlagType(
    _address, "host:port, such as node-0:1234 or [::1]:1234", "HOST:PORT"
)
PORT = FlagType(_port, "a port from 0 to 65535", "PORT", may_be_empty=False)
STEPS = FlagType(_steps, "integers separated by commas, such as 1000,2000", "STEPS")
POSITIVE = FlagType(_positive, "a number above 0", "X")
LOSS = FlagType(_loss, "a number from 0", "VALUE")
LANGUAGES = FlagType(_languages, "two codes of languages, such as en,de", "CODE,CODE")
LICENSE = FlagType(_license, "an identifier such as apache-2.0", "ID")
PERCENT = FlagType(_percent, "a percentage above 0 and below 100, such as 1%", "P%")
FRACTION = FlagType(_fraction, "a number above 0 and at most 1", "X")


class Flag(NamedTuple):
    """One flag of a mode.

    Attributes:
      help: one sentence for `--help`.
      default: text of the default value.
      choices: the valid values, if they are few.
      unless: a switch, or FLAG=VALUE, without which the flag is required.
      requires: a flag that must be given too, or FLAG=VALUE.
      excludes: a flag that must not be given too.
      key: the configuration key that the flag is short for.
    """

    help: str
    type: FlagType = TEXT
    default: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    unless: str = ""
    requires: str = ""
    excludes: str = ""
    key: str = ""

    def parse(self, text: str, *, name: str, mode: str) -> Any:
        """Parses the text of a value.

        Raises:
          ValueError: it is invalid; the message names the flag.

        Example:
          >>> Flag("Steps.", STEPS).parse("1000, 2000", name="steps", mode="average")
          (1000, 2000)
        """
        valid = self.type.valid
        try:
            if not self.choices or text in ("", *self.choices):
                return self.type.parse(text)
            valid = f"one of {', '.join(self.choices)} with --mode={mode}"
            cause = None
        except ValueError as error:
            cause = error
        raise ValueError(
            f"--{name}={printable(text)} must be {valid}. Change --{name}."
        ) from cause

    def usage(self, name: str) -> str:
        """Returns the flag with the placeholder of its value.

        Example:
          >>> Flag("Number of devices.", COUNT).usage("devices")
          '--devices=N'
        """
        if self.type is SWITCH:
            return f"--{name}"
        return f"--{name}={self.metavar or self.type.metavar}"


def flag(*args: Any, **kwargs: Any) -> Any:
    """Declares a field of a mode's options that is a `Flag`, with its arguments."""
    return field(metadata={"flag": Flag(*args, **kwargs)})
