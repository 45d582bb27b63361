"""Splits a command line into flags and words, and checks each of them.

absl and ml_collections stop at the first error, with a traceback or the text of a
Python exception.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from absl import flags

from t2t_jax.cli.flags.modes import FLAGS, MODES, flags_of
from t2t_jax.cli.flags.values import SWITCH, TEXT, printable
from t2t_jax.config import KINDS, defaults, did_you_mean, key_hint, keys, sections
from t2t_jax.errors import ConfigError, UserError

KEYWORD_VALUES = {"config.training.micro_batches": {"auto": "0"}}
"""Flag -> keywords that it accepts instead of a number, and their values."""

_NEVER_EMPTY = ("config", "mode", "checkpoint")
_NUMBER = re.compile(r"-[0-9.]")
_PARSERS: dict[type, Callable[[str], Any]] = {
    int: flags.IntegerParser().parse,
    float: flags.FloatParser().parse,
    bool: flags.BooleanParser().parse,
    str: str,
}


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


class CommandLine(NamedTuple):
    """A command line, split.

    Attributes:
      word: the first argument, if it is a word; else "".
      stray: consecutive words that are neither flags nor their values, each with the
        preceding flag.
    """

    word: str
    flags: list[Argument]
    stray: list[tuple[Argument | None, str]]

    def last(self, name: str) -> str | None:
        """Returns the last value of a flag; None if it or its value is missing."""
        values = [flag.value for flag in self.flags if flag.name == name]
        return values[-1] if values else None

    @property
    def mode(self) -> str:
        """The mode, if it is given; else ""."""
        return self.word if self.word in MODES else self.last("mode") or ""


def split(argv: Sequence[str]) -> CommandLine:
    """Splits a command line, without checking names or values.

    A flag's value follows `=` or is the next argument, unless that is a flag itself.
    Switches need no value; `--noNAME` turns one off.

    Example:
      >>> line = split(["translate", "--workdir", "w", "--resume"])
      >>> line.mode, line.last("workdir"), line.last("resume")
      ('translate', 'w', 'true')
    """
    rest = list(argv)
    line = CommandLine("" if not rest or _is_flag(rest[0]) else rest.pop(0), [], [])
    while rest:
        if _is_flag(rest[0]):
            line.flags.append(_take_flag(rest))
            continue
        words = []
        while rest and not _is_flag(rest[0]):
            words.append(rest.pop(0))
        line.stray.append((line.flags[-1] if line.flags else None, " ".join(words)))
    return line


def check(line: CommandLine) -> tuple[list[Argument], list[UserError]]:
    """Returns the valid flags, and the errors of the others and of stray words."""
    faults = [(argument, _fault(argument, mode=line.mode)) for argument in line.flags]
    errors = [*map(UserError, _word_problems(line)), *(e for _, e in faults if e)]
    return [argument for argument, error in faults if not error], errors


def parse_key(key: str, text: str) -> Any:
    """Parses the value of a key of the configuration.

    Raises:
      ValueError: it is not of the key's type.
    """
    return _PARSERS[type(defaults()[key])](text)


@cache
def _switches() -> frozenset[str]:
    of_keys = [f"config.{k}" for k, v in defaults().items() if isinstance(v, bool)]
    own = [name for name, flag in FLAGS.items() if flag.type is SWITCH]
    return frozenset(["version", *own, *of_keys])


def _take_flag(rest: list[str]) -> Argument:
    """Removes a flag and its value from the arguments."""
    written, equals, text = rest.pop(0).partition("=")
    name, value = written.lstrip("-"), text if equals else None
    if value is None and {name, name.removeprefix("no")} & _switches():
        value = "true" if name in _switches() else "false"
        name = name if name in _switches() else name.removeprefix("no")
    elif value is None and rest and not _is_flag(rest[0]):
        value = rest.pop(0)
    return Argument(name, KEYWORD_VALUES.get(name, {}).get(value or "", value), written)


def _is_flag(token: str) -> bool:
    """Returns whether a token is a flag; `-`, `--` and negative numbers are words."""
    return token[:1] == "-" and bool(token.strip("-")) and not _NUMBER.match(token)


def _word_problems(line: CommandLine) -> Iterator[str]:
    """Explains words that are neither flags nor their values.

    Suggestions name a mode, so that none trains by default.
    """
    if line.word in MODES and line.last("mode") not in (None, line.word):
        yield f"{line.word!r} and --mode={line.last('mode')} are two modes. Pass one."
    elif line.word and line.word not in MODES:
        near = did_you_mean(line.word.lower(), list(MODES))
        near = near or f" Modes: {', '.join(MODES)}."
        yield f"{line.word!r} is neither a mode nor a flag.{near}"
    for before, text in line.stray:
        advice = "Pass the mode first, flags as --name=value; MODE --help lists them."
        first = text.split(" ")[0]
        if before and before.value and first not in MODES and "=" not in first:
            advice = (
                "Use quotes if it belongs to the value before it: "
                f"{before.written}='{before.value} {text}'."
            )
        yield f"{text!r} is not a flag. {advice}"


def _fault(argument: Argument, *, mode: str) -> UserError | None:
    """Checks one flag; None if it is valid."""
    name, value, written = argument
    flag = FLAGS.get(name)
    key = flag.key if flag else name.removeprefix("config.")
    kind = ConfigError if name.startswith("config.") else UserError
    if not (flag or name == "config" or (kind is ConfigError and key in keys())):
        return kind(_explain_unknown(argument, mode=mode))
    if value is None:
        return kind(f"{written} needs a value. Pass {written}=VALUE.")
    needed = name in _NEVER_EMPTY
    if flag and flag.type is not TEXT:
        needed |= bool(flag.default) or not flag.type.may_be_empty
    if not value and needed:
        return UserError(f"{written}= is empty. Pass a value, or leave {written} out.")
    of = bool if flag and flag.type is SWITCH else type(defaults().get(key, ""))
    try:
        _PARSERS[of](value)
    except (ValueError, TypeError):
        keywords = "".join(f" or {word}" for word in KEYWORD_VALUES.get(name, {}))
        return (ConfigError if key else UserError)(
            f"{written}={printable(value)} must be {KINDS[of]}{keywords}. "
            f"Change {written}."
        )
    return None


def _explain_unknown(argument: Argument, *, mode: str) -> str:
    """Returns the error of an unknown flag or key, with a suggestion."""
    name, _, written = argument
    key = name.removeprefix("config.")
    if key == name:
        return f"There is no flag {written}.{_flag_hint(name, mode=mode)}"
    if key in sections():
        return f"{written} is a section of keys. Pass a key; --help={key} lists them."
    return f"There is no key {name}.{key_hint(key, flag='--config.')}"


def _flag_hint(name: str, *, mode: str) -> str:
    """Suggests a flag that the mode has, or a key of the configuration."""
    plain = name.replace("-", "_").lower()
    if plain in MODES:
        return f" Did you mean --mode={plain}?"
    known = ["config", "mode", *(flags_of(mode) if mode in MODES else FLAGS)]
    tails = {key.rpartition(".")[2] for key in keys()}
    if plain not in known and plain.rpartition(".")[2] in tails:
        return key_hint(plain, flag="--config.")
    near = difflib.get_close_matches(plain, known, n=1, cutoff=0.7)
    return f" Did you mean --{near[0]}?" if near else ""
