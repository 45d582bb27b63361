"""Documentation of keys and flags, parsed from the docstrings of their dataclasses."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from t2t_jax.config import KINDS, Config, choices, defaults, sections

_ENTRY = re.compile(r" {2}(\w+?)_?(?: \(([^)]*)\))?: +(.*)")


class KeyDoc(NamedTuple):
    """Documentation of one key.

    Attributes:
      key: `section.name`, or `name` at the top level.
      unit: of a number; "" for other values.
      meaning: the text of the docstring, in one line.
      choices: the valid words, if they are few.
    """

    key: str
    default: Any
    unit: str
    meaning: str
    choices: tuple[str, ...]

    @property
    def values(self) -> str:
        """Describes the valid values: type and unit, or the choices."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = KINDS[type(self.default)].removeprefix("an ").removeprefix("a ")
        return f"{kind}: {self.unit}" if self.unit else kind


@cache
def key_docs() -> dict[str, KeyDoc]:
    """Maps every settable key to its documentation, in order of declaration."""
    entries = attribute_docs(Config)
    for section in sections():
        of_section = attribute_docs(get_type_hints(Config)[section])
        entries |= {f"{section}.{name}": entry for name, entry in of_section.items()}
    words = choices()
    return {
        key: KeyDoc(key, default, *entries.get(key, ("", "")), words.get(key, ()))
        for key, default in defaults().items()
    }


def section_doc(section: str) -> str:
    """Returns the description of a section of the configuration."""
    return attribute_docs(Config).get(section, ("", ""))[1]


def attribute_docs(cls: type) -> dict[str, tuple[str, str]]:
    """Maps each documented attribute to (unit, meaning); empty with `python -OO`.

    A final underscore, as of `from_`, is left out.
    """
    found: dict[str, tuple[str, str]] = {}
    name = ""
    _, _, attributes = (inspect.getdoc(cls) or "").partition("\nAttributes:\n")
    for line in attributes.split("\n\n")[0].splitlines():
        if entry := _ENTRY.fullmatch(line):
            name, unit, text = entry.groups()
            found[name] = (unit or "", text)
        elif name:
            unit, text = found[name]
            found[name] = (unit, f"{text} {line.strip()}".strip())
    return found
