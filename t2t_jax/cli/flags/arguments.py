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
      text: the words, with spaces between.
      before: the preceding flag, or None.
    """

    text: str
    before: Argument | None


class CommandLine(NamedTuple):
    """A command line, split.

    Attributes:
      leading: the first argument, if it is a word; else "".
      flags: in order.
      stray: all other words.
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

    Args:
      switches: names of the flags that need no value; `--noNAME` turns one off.

    Returns:
      The parts. A flag's value follows `=` or is the next argument, unless that is a
      flag itself.

    Example:
      >>> line = split(["translate", "--workdir", "w", "--resume"], switches=["resume"])
      >>> line.leading, [str(flag) for flag in line.flags]
      ('translate', ['--workdir=w', '--resume=true'])
    """
    line = CommandLine("" if not argv or _is_flag(argv[0]) else argv[0], [], [])
    rest = list(argv[1:] if line.leading else argv)
    previous: list[str] = []  # words that follow one another
    while rest:
        token = rest.pop(0)
        if not _is_flag(token):
            previous.append(token)
            continue
        _close(previous, line)
        name, equals, value = token.lstrip("-").partition("=")
        written = token.partition("=")[0]
        if equals:
            line.flags.append(Argument(name, value, written))
        elif name in switches:
            line.flags.append(Argument(name, "true", written))
        elif _without_no(name) in switches:
            line.flags.append(Argument(_without_no(name), "false", written))
        else:
            follows = bool(rest) and not _is_flag(rest[0])
            argument = Argument(name, rest.pop(0) if follows else None, written)
            line.flags.append(argument)
    _close(previous, line)
    return line


def printable(value: str) -> str:
    """Returns a value for a message: in one line, and truncated.

    Example:
      >>> printable("x" * 1000)[-3:], printable("a" + chr(10) + "b")
      ('xx…', 'a?b')
    """
    text = "".join(letter if letter.isprintable() else "?" for letter in value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _close(words: list[str], line: CommandLine) -> None:
    """Moves collected words to the line's stray words."""
    if words:
        before = line.flags[-1] if line.flags else None
        line.stray.append(Words(" ".join(words), before))
        words.clear()


def _is_flag(token: str) -> bool:
    """Returns whether a token is a flag; `-`, `--` and negative numbers are words."""
    return token[:1] == "-" and bool(token.strip("-")) and not _NUMBER.match(token)


def _without_no(name: str) -> str:
    """Returns the switch that `noNAME` turns off; `noconfig.KEY` is one too."""
    return name.removeprefix("no")
