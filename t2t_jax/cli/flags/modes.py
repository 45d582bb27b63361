"""The modes of the command line, the flags of each, and what flags and keys mean.

Meanings are parsed from the docstrings of dataclasses.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from dataclasses import fields
from functools import cache
from keyword import iskeyword
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from t2t_jax.cli.flags.options import OPTIONS, DistributedOptions, Options
from t2t_jax.cli.flags.values import Flag
from t2t_jax.config import KINDS, Config, choices, defaults, sections

MODES = {mode: cls.about for mode, cls in OPTIONS.items()}
"""One line about each mode."""

_ENTRY = re.compile(r" {2}(\w+?)_?(?: \(([^)]*)\))?: +(.*)")
_MODE = Flag(default="train", metavar="MODE", choices=tuple(MODES))


def _flags(cls: type[Options]) -> dict[str, Flag]:
    # `from` is a keyword, so its field is `from_`.
    return {f.name.rstrip("_"): f.metadata["flag"] for f in fields(cls) if f.metadata}


_OF_PROCESSES = _flags(DistributedOptions).keys() - _flags(Options)


@cache
def flags_of(mode: str) -> dict[str, Flag]:
    """Maps the flags of a mode, but for `mode`, to their declarations in this mode."""
    own = _flags(OPTIONS[mode])
    return {name: own[name] for name in sorted(own, key=_OF_PROCESSES.__contains__)}


def flag_help(name: str, mode: str) -> str:
    """Returns the meaning of a flag in a mode; "" with `python -OO`."""
    for cls in OPTIONS[mode].__mro__:
        if name in (docs := attribute_docs(cls)):
            return docs[name][1]
    key = FLAGS[name].key
    return key_docs()[key].meaning if key else ""


def examples_of(mode: str) -> list[str]:
    """Returns two command lines of a mode; none with `python -OO`.

    Example:
      >>> examples_of("show_batch")[0]
      'show_batch --workdir=runs/mine --step=1'
    """
    _, _, lines = (inspect.getdoc(OPTIONS[mode]) or "").partition("\nExamples:\n")
    return [line.strip() for line in lines.split("\n\n")[0].splitlines()]


def module_of(mode: str) -> str:
    """Returns the name of a mode's file in `cli/modes`.

    Example:
      >>> module_of("train"), module_of("import")
      ('train', 'import_')
    """
    return f"{mode}_" if iskeyword(mode) else mode


def modes_of(name: str) -> dict[str, Flag]:
    """Maps the modes that take a flag to its declarations.

    Example:
      >>> list(modes_of("step"))
      ['show_batch']
    """
    if name == "mode":
        return dict.fromkeys(MODES, _MODE)
    return {mode: flags_of(mode)[name] for mode in MODES if name in flags_of(mode)}


_ALL = [item for mode in MODES for item in flags_of(mode).items()]
FLAGS = {"mode": _MODE, **dict(sorted(_ALL, key=lambda item: item[0] in _OF_PROCESSES))}
"""Every flag but `config`; `default`, `type` and `key` are equal in all modes."""


def command_of(mode: str) -> list[str]:
    """Returns the first words of a command line for a mode.

    They have the form in which this program was started.
    """
    started = sys.argv[0]
    if Path(started).name == "t2t-jax":
        return ["t2t-jax" if shutil.which("t2t-jax") == started else started, mode]
    module = "t2t_jax" if Path(started).name == "__main__.py" else "t2t_jax.main"
    return ["python", "-m", module, f"--mode={mode}"]


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
