"""Declares what a flag is, and the types of flags, which parse and check values."""

from __future__ import annotations

import builtins
import math
import os
import re
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from t2t_jax.config import defaults
from t2t_jax.data.vocabulary.tokenizers import LANGUAGE_CODE
from t2t_jax.devices.distributed.cluster import split_address

_LONGEST = 200


class FlagType(NamedTuple):
    """The type of a flag's value.

    Attributes:
      convert: makes the value of a text that is not empty. Raises ValueError.
      valid: describes the valid values.
      metavar: placeholder of the value in `--help`.
      empty: the value of a flag that was not given, or is empty.
      accepts: whether a converted value is valid.
      may_be_empty: whether `--FLAG=` is valid, without a default.
    """

    convert: Callable[[str], Any]
    valid: str
    metavar: str
    empty: Any = ""
    accepts: Callable[[Any], Any] = lambda value: True
    may_be_empty: bool = True


def _integer(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError
    return int(text)


def _path(text: str) -> str:
    if "\0" in text or any(len(os.fsencode(part)) > 255 for part in text.split("/")):
        raise ValueError
    try:
        return str(Path(text).expanduser()) if text[:1] == "~" else text
    except RuntimeError as error:
        raise ValueError from error


def _paths(text: str) -> tuple[str, ...]:
    return tuple(_path(path) for path in text.split(",") if path)


def _socket(text: str) -> str:
    split_address(text)
    return text


def _steps(text: str) -> tuple[int, ...]:
    return tuple(_integer(part.strip()) for part in text.split(",") if part.strip())


def _percent(text: str) -> float:
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else math.nan


def _is_share(number: float) -> bool:
    return 0 < number < 1


def _languages(text: str) -> tuple[str, ...]:
    found = re.fullmatch(f"({LANGUAGE_CODE}),({LANGUAGE_CODE})", text.replace("-", "_"))
    return found.groups() if found else ()


def _count_up_to(most: int) -> FlagType:
    valid = f"an integer from 1 to {most:,}"
    return COUNT._replace(valid=valid, accepts=lambda number: 1 <= number <= most)


_A_PATH = "a valid path; ~user must be a user of this machine"
# Each shard is a file, and should take minutes to translate.
_MAX_SHARDS = 100_000

TEXT = FlagType(str, "text", "VALUE")
SWITCH = FlagType(flags.BooleanParser().parse, "true or false", "", empty=False)
COUNT = FlagType(_integer, "an integer from 1", "N", 0, lambda number: number >= 1)
SHARDS = _count_up_to(_MAX_SHARDS)
CANDIDATES = _count_up_to(999)
INDEX = FlagType(_integer, "an integer from 0", "I", empty=None)
FILE = FlagType(_path, _A_PATH, "FILE", may_be_empty=False)
DIRECTORY = FILE._replace(metavar="DIR")
_WITH_COMMAS = "separated by commas; ~user must be a user of this machine"
DIRECTORIES = FlagType(_paths, f"directories, {_WITH_COMMAS}", "DIRS", ())
FILES = FlagType(_paths, f"files, {_WITH_COMMAS}", "FILES", ())
ADDRESS = FlagType(_socket, "host:port, such as node-0:1234 or [::1]:1234", "HOST:PORT")
PORT = FlagType(_integer, "a port from 0 to 65535", "PORT", "", lambda n: n <= 65_535)
STEPS = FlagType(
    _steps, "integers separated by commas, such as 1000,2000", "STEPS", (), bool
)
POSITIVE = FlagType(float, "a number above 0", "X", 0.0, lambda x: 0 < x < math.inf)
LOSS = FlagType(float, "a number from 0", "VALUE", None, lambda x: 0 <= x < math.inf)
SHARE = FlagType(
    float, "a number above 0 and at most 1", "X", accepts=lambda number: 0 < number <= 1
)
PERCENT = FlagType(
    _percent, "a percentage above 0 and below 100, such as 1%", "P%", 0.0, _is_share
)
LANGUAGES = FlagType(
    _languages, "two codes of languages, such as en,de", "CODE,CODE", None, bool
)
_ID = re.compile("[a-z0-9]+([.-][a-z0-9]+)*")
LICENSE = FlagType(str, "an identifier such as apache-2.0", "ID", accepts=_ID.fullmatch)


class Flag(NamedTuple):
    """One flag of a mode. The docstring of the mode's options has its meaning.

    Attributes:
      default: text of the default value.
      choices: the valid values, if they are few.
      unless: flags without all of which it is required, each FLAG or FLAG=VALUE.
      requires: flags that must be given too, each FLAG or FLAG=VALUE|VALUE.
      excludes: flags that must not be given too.
      key: the configuration key that the flag is short for.
    """

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
          >>> Flag(STEPS).parse("1000, 2000", name="steps", mode="average")
          (1000, 2000)
        """
        if not text:
            return self.type.empty
        valid, cause = self.type.valid, None
        if self.choices:
            valid = f"one of {', '.join(self.choices)} with --mode={mode}"
        try:
            value = self.type.convert(text)
            if text in self.choices or (not self.choices and self.type.accepts(value)):
                return value
        except ValueError as error:
            cause = error
        raise ValueError(
            f"--{name}={printable(text)} must be {valid}. Change --{name}."
        ) from cause

    def usage(self, name: str) -> str:
        """Returns the flag with the placeholder of its value.

        Example:
          >>> Flag(COUNT).usage("devices")
          '--devices=N'
        """
        shown = self.metavar or self.type.metavar
        return f"--{name}={shown}" if shown else f"--{name}"


def flag(type: FlagType = TEXT, **kwargs: Any) -> Any:
    """Declares a field of a mode's options that is a `Flag`, with its attributes.

    A flag that is short for a key has the type of the key, and if none is given the
    placeholder of that type.
    """
    if key := kwargs.get("key"):
        kind = builtins.type(defaults()[key])
        type = SWITCH if kind is bool else TEXT
        kwargs.setdefault("metavar", {int: "N", float: "X", str: "NAME"}.get(kind, ""))
    return field(metadata={"flag": Flag(type, **kwargs)})


def printable(value: str) -> str:
    """Returns a value for a message: in one line, and truncated.

    Example:
      >>> printable("x" * 1000)[-3:], printable("a" + chr(10) + "b")
      ('xx…', 'a?b')
    """
    text = "".join(letter if letter.isprintable() else "?" for letter in value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
