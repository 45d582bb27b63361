"""From mappings of names and values to dataclasses, with every mistake named."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from t2t_jax.errors import ConfigError


def nearest(name: str, known: list[str]) -> str:
    """Returns " Did you mean …?" for the known name nearest to `name`, or "".

    Example:
      >>> nearest("stps", ["steps", "seed"])
      ' Did you mean steps?'
    """
    near = difflib.get_close_matches(name, known, n=1)
    if not near:  # A right last word in a wrong section: data.d_model.
        last = name.rsplit(".", 1)[-1]
        tails = {key.rsplit(".", 1)[-1]: key for key in known}
        near = [tails[t] for t in difflib.get_close_matches(last, list(tails), n=1)]
    return f" Did you mean {near[0]}?" if near else ""


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
                f"{key}={value!r} must be of type {wanted.__name__}. "
                f"Change config.{key}."
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
