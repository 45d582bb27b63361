"""Checks the arguments of public functions that take lines of text.

A `str` is a sequence of its characters, and `bytes` of numbers, so that a function of
lines would take either without complaint and treat every character as a line. All
public functions of lines check their arguments here, in the same words.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from t2t_jax.errors import UserError

_SHOWN_CHARACTERS = 40


def as_lines(lines: Iterable[str], *, caller: str, noun: str = "lines") -> list[str]:
    """Returns the strings of an iterable as a list.

    Args:
      lines: any ordered iterable of `str`: a list, a generator, an array or a column of
        strings.
      caller: the public function, for the message.
      noun: what its argument holds, for the message.

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
    found = list(lines)
    for number, line in enumerate(found):
        if not isinstance(line, str):
            raise TypeError(
                f"{caller} takes {noun} of type str, but {noun}[{number}] is "
                f"{_described(line)}. {_remedy(line)}"
            )
    return [str(line) for line in found]


def as_directory(path: str | Path, *, caller: str) -> Path:
    """Returns the path of a directory that a public function was given.

    Args:
      caller: the public function, for the message.

    Raises:
      TypeError: it is not a path.
      UserError: it is empty, which would be the working directory.

    Example:
      >>> as_directory("runs/phrasebook", caller="load").name
      'phrasebook'
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"{caller} takes the path of a directory, not "
            f"{with_article(type(path).__name__)}. Pass a str or a Path."
        )
    if not os.fspath(path):
        raise UserError(
            f'{caller} takes the path of a directory, and it is empty. Pass "." for '
            "the working directory."
        )
    return Path(path)


def require_lines(lines: Iterable[object], *, caller: str, noun: str = "lines") -> None:
    """Checks that an argument is an ordered iterable, without reading it.

    Raises:
      TypeError: `lines` is a single string, or not an ordered iterable.

    Example:
      >>> require_lines(iter(["a"]), caller="train")
    """
    takes = f"{caller} takes a sequence of {noun}"
    if isinstance(lines, str):
        raise TypeError(f"{takes}, not a str. Pass [{_quoted(lines)}].")
    if isinstance(lines, bytes | bytearray | memoryview):
        kind = type(lines).__name__
        raise TypeError(
            f"{takes}, not {kind}. Pass a list of str, such as "
            'data.decode("utf-8").splitlines().'
        )
    if isinstance(lines, Mapping | Set) or not _is_iterable(lines):
        kind = type(lines).__name__
        raise TypeError(f"{takes}, not {with_article(kind)}. Pass a list of str.")


def _is_iterable(value: Any) -> bool:
    try:
        iter(value)
    except TypeError:
        return False
    return True


def _quoted(text: str) -> str:
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[: _SHOWN_CHARACTERS - 1]}…"
    return json.dumps(text, ensure_ascii=False)


def with_article(kind: str) -> str:
    """Puts an article before the name of a type, None excepted.

    Example:
      >>> with_article("int"), with_article("dict"), with_article("NoneType")
      ('an int', 'a dict', 'None')
    """
    if kind == "NoneType":
        return "None"
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _described(value: Any) -> str:
    kind = type(value).__name__
    return f"{value} ({kind})" if isinstance(value, int | float) else with_article(kind)


def _remedy(value: Any) -> str:
    if isinstance(value, bytes):
        return 'Pass line.decode("utf-8").'
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return 'Pass "" for a missing value.'
    return "Pass a list of str."
