"""Splits a command line into a mode, flags with their values, and stray words."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

_LONGEST = 200
_NUMBER = re.compile(r"-[0-9.]")


class Argument(NamedTuple):
    """A flag with its value.

    Attributes:
      name: without its dashes, such as `workdir` or `config.steps`.
      value: the text of the value; None if it is missing.
      written: the flag as the user wrote it, with its dashes.
    """

    name: str
    value: str | None
    written: str

    def __str__(self) -> str:
        return f"--{self.name}={self.value or ''}"


class Words(NamedTuple):
    """Consecutive words of a command line that are neither flags nor their values.

    Attributes:
      before: the preceding flag.
    """

    text: str
    before: Argument | None


class CommandLine(NamedTuple):
    """A command line, split.

    Attributes:
      leading: the first argument, if it is a word; else "".
    """

    leading: str
    flags: list[Argument]
    stray: list[Words]

    def last(self, name: str) -> str | None:
        """Returns the last value of a flag; None if it or its value is missing."""
        values = [flag.value for flag in self.flags if flag.name == name]
        return values[-1] if values else None


def split(argv: Sequence[str], *, switches: Collection[str]) -> CommandLine:
    """Splits a command line, without checking names or values.

    A flag's value follows `=` or is the next argument, unless that is a flag itself.

    Args:
      switches: names of the flags that need no value; `--noNAME` turns one off.

    Example:
      >>> line = split(["translate", "--workdir", "w", "--resume"], switches=["resume"])
      >>> line.leading, [str(flag) for flag in line.flags]
      ('translate', ['--workdir=w', '--resume=true'])
    """
    line = CommandLine("" if not argv or _is_flag(argv[0]) else argv[0], [], [])
    rest = list(argv[1:] if line.leading else argv)
    while rest:
        if _is_flag(rest[0]):
            line.flags.append(_take_flag(rest, switches=switches))
            continue
        words = []
        while rest and not _is_flag(rest[0]):
            words.append(rest.pop(0))
        before = line.flags[-1] if line.flags else None
        line.stray.append(Words(" ".join(words), before))
    return line


def printable(value: str) -> str:
    """Returns a value for a message: in one line, and truncated.

    Example:
      >>> printable("x" * 1000)[-3:], printable("a" + chr(10) + "b")
      ('xx…', 'a?b')
    """
    text = "".join(letter if letter.isprintable() else "?" for letter in value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _take_flag(rest: list[str], *, switches: Collection[str]) -> Argument:
    """Removes a flag and its value from the arguments."""
    written, equals, value = rest.pop(0).partition("=")
    name = written.lstrip("-")
    if equals:
        return Argument(name, value, written)
    if name in switches:
        return Argument(name, "true", written)
    if name.removeprefix("no") in switches:
        return Argument(name.removeprefix("no"), "false", written)
    follows = bool(rest) and not _is_flag(rest[0])
    return Argument(name, rest.pop(0) if follows else None, written)


def _is_flag(token: str) -> bool:
    """Returns whether a token is a flag; `-`, `--` and negative numbers are words."""
    return token[:1] == "-" and bool(token.strip("-")) and not _NUMBER.match(token)
