"""Checks arguments of public functions: lines of text, and directories.

A `str` is an iterable of its characters, so without a check every character would be a
line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path

from t2t_jax.errors import UserError, short_repr

_MAX_SHOWN = 40


def as_lines(lines: Iterable[str], *, caller: str, noun: str = "lines") -> list[str]:
    """Returns the strings of an iterable as a list.

    Args:
      lines: any ordered iterable of `str`: a list, a generator, an array or a column of
        strings.
      caller: the public function, for the message.
      noun: the elements of its argument, for the message.

    Raises:
      TypeError: `lines` is a single string, or not an ordered iterable, or an element
        is not a string.

    Example:
      >>> as_lines(("a", "b"), caller="translate")
      ['a', 'b']
      >>> as_lines("The bus", caller="translate")
      Traceback (most recent call last):
      TypeError: translate takes a sequence of lines, not a str. Pass ["The bus"].
    """
    require_lines(lines, caller=caller, noun=noun)
    elements = list(lines)
    for number, line in enumerate(elements):
        if not isinstance(line, str):
            what = f"{noun}[{number}] is {short_repr(line)} ({type(line).__name__})"
            advice = 'Pass a list of str, with "" for a missing value.'
            raise TypeError(f"{caller} takes {noun} of type str, but {what}. {advice}")
    return [str(line) for line in elements]


def as_directory(path: str | Path, *, caller: str) -> Path:
    """Returns the directory argument of a public function as a `Path`.

    Args:
      caller: the public function, for the message.

    Raises:
      TypeError: `path` is not a path.
      UserError: `path` is empty, which would mean the working directory.

    Example:
      >>> as_directory("runs/phrasebook", caller="load").name
      'phrasebook'
    """
    takes = f"{caller} takes the path of a directory"
    if not isinstance(path, str | os.PathLike):
        raise wrong_type(takes, path, "Pass a str or a Path.")
    if not os.fspath(path):
        advice = 'Pass "." for the working directory.'
        raise UserError(f"{takes}, and it is empty. {advice}")
    return Path(path)


def require_lines(lines: Iterable[object], *, caller: str, noun: str = "lines") -> None:
    """Checks that an argument is an ordered iterable, without iterating over it.

    Raises:
      TypeError: `lines` is a single string, or not an ordered iterable.

    Example:
      >>> require_lines(iter(["a"]), caller="train")
    """
    takes = f"{caller} takes a sequence of {noun}"
    if isinstance(lines, str):
        shown = lines if len(lines) <= _MAX_SHOWN else f"{lines[: _MAX_SHOWN - 1]}…"
        quoted = json.dumps(shown, ensure_ascii=False)
        raise TypeError(f"{takes}, not a str. Pass [{quoted}].")
    if not isinstance(lines, bytes | bytearray | memoryview | Mapping | Set):
        with suppress(TypeError):
            iter(lines)
            return
    raise wrong_type(takes, lines, "Pass a list of str.")


def wrong_type(takes: str, value: object, advice: str) -> TypeError:
    """Returns the error about an argument of another type than a function takes.

    Example:
      >>> wrong_type("load takes a path", 3, "Pass a str.")
      TypeError('load takes a path, not an int. Pass a str.')
    """
    return TypeError(f"{takes}, not {with_article(value)}. {advice}")


def with_article(value: object) -> str:
    """Returns the name of the type of a value with its article, and None for None.

    Example:
      >>> with_article(3), with_article({}), with_article(None)
      ('an int', 'a dict', 'None')
    """
    if value is None:
        return "None"
    kind = type(value).__name__
    if kind == "bytes":
        return kind
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
