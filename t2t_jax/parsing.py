"""From mappings of names and values to dataclasses, with every mistake named."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from t2t_jax.errors import ConfigError

KINDS: dict[type, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
}
"""What a value of each type is called in messages and in the help."""


def alternatives(words: Sequence[str], *, word: str = "or") -> str:
    """Joins words to a list in prose.

    Example:
      >>> alternatives(["a", "b", "c"])
      'a, b or c'
    """
    return f" {word} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def similar(name: str, known: Sequence[str]) -> list[str]:
    """Finds the known names that a wrong one may have been meant to be.

    Args:
      name: the wrong name, `section.name` or `name`.
      known: the right ones.

    Returns:
      Those with the same last word, of the nearest section if that is near to one of
      theirs; if there are none, the one with the nearest spelling; or nothing.

    Example:
      >>> similar("data.d_model", ["model.d_model", "seed"])
      ['model.d_model']
    """
    section, _, last = name.rpartition(".")
    same = [key for key in known if key.rpartition(".")[2] == last]
    if same:
        near = difflib.get_close_matches(
            section, [key.rpartition(".")[0] for key in same], n=1
        )
        of_section = [key for key in same if key.rpartition(".")[0] in near]
        return of_section or same
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return near
    tails = {key.rpartition(".")[2]: key for key in reversed(known)}
    # Words are short: below this cutoff "file" is near to "flagfile".
    return [
        tails[tail] for tail in difflib.get_close_matches(last, tails, n=1, cutoff=0.75)
    ]


def nearest(name: str, known: Sequence[str]) -> str:
    """Returns " Did you mean …?" for the known names nearest to `name`, or "".

    Example:
      >>> nearest("stps", ["steps", "seed"])
      ' Did you mean steps?'
    """
    near = similar(name, known)
    return f" Did you mean {alternatives(near)}?" if near else ""


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields nested values as (`section.name`, value).

    Example:
      >>> list(flatten({"steps": 3, "model": {"d_ff": 8}}))
      [('steps', 3), ('model.d_ff', 8)]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def check(
    given: Mapping[str, Any],
    hints: Mapping[str, Any],
    *,
    prefix: str,
    problems: list[str],
    hint: Callable[[str], str],
) -> dict[str, Any]:
    """Keeps the values that have a known key and the right type; notes the others.

    Args:
      given: names and values.
      hints: the names that there are, and the type of each.
      prefix: what stands before a name in a message.
      problems: gets a message for each value that is left out.
      hint: says what an unknown key may have been meant to be.
    """
    checked = {}
    for name, value in given.items():
        key = f"{prefix}{name}"
        if name not in hints:
            problems.append(f"There is no key config.{key}.{hint(key)}")
            continue
        wanted = hints[name]
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is wanted:  # isinstance would take True for 1
            checked[name] = value
        else:
            problems.append(
                f"{key}={value!r} must be {KINDS[wanted]}. Change config.{key}."
            )
    return checked


def construct(
    cls: Any,
    arguments: dict[str, Any],
    *,
    into: dict[str, Any],
    name: str,
    problems: list[str],
) -> None:
    """Builds a dataclass into `into[name]`, or notes what it says is wrong.

    Args:
      cls: the dataclass.
      arguments: its fields.
      into: where it goes.
      name: under which name.
      problems: gets the messages.
    """
    try:
        into[name] = cls(**arguments)
    except ConfigError as error:
        problems.extend(error.problems)
