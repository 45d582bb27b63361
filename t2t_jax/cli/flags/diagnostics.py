"""Splits a command line, and checks each flag and word of it.

absl and ml_collections stop at the first error, with a traceback or the text of a
Python exception. So all arguments are checked before these parse them.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags

from t2t_jax.cli.flags.arguments import Argument, CommandLine, Words, printable, split
from t2t_jax.cli.flags.modes import FLAGS, MODES, flags_of
from t2t_jax.cli.flags.values import SWITCH
from t2t_jax.config import KINDS, defaults, keys, sections
from t2t_jax.config_keys import DERIVED, alternatives, key_suggestions

PROGRAM = "t2t-jax"
"""The command in suggestions; `python -m t2t_jax` is equivalent."""

KEYWORD_VALUES = {"config.training.micro_batches": {"auto": "0"}}
"""Flag -> keywords that it accepts instead of a number, and their values."""

_NEVER_EMPTY = ("config", "mode", "checkpoint")
_PARSERS: dict[type, flags.ArgumentParser[Any]] = {
    int: flags.IntegerParser(),
    float: flags.FloatParser(),
    bool: flags.BooleanParser(),
}


class Fault(NamedTuple):
    """An error of one flag, and whether only the configuration is affected."""

    message: str
    is_config: bool


def read_line(argv: Sequence[str]) -> CommandLine:
    """Splits a command line into a mode, flags and stray words."""
    switches = ["version"]
    switches += [name for name, flag in FLAGS.items() if flag.type is SWITCH]
    switches += [
        f"config.{key}" for key, value in defaults().items() if isinstance(value, bool)
    ]
    line = split(argv, switches=switches)
    return line._replace(flags=[_expand_keywords(flag) for flag in line.flags])


def find_faults(line: CommandLine, *, mode: str) -> tuple[list[Fault], list[Argument]]:
    """Returns the faults of the flags, and the valid flags.

    Args:
      mode: for suggestions; "" if none was given.
    """
    checked = [(flag, _fault(flag, mode=mode)) for flag in line.flags]
    faults = [fault for _, fault in checked if fault]
    return faults, [flag for flag, fault in checked if not fault]


def conflicting_modes(word: str, given: str | None) -> list[str]:
    """Returns an error if a leading mode and `--mode` differ."""
    if word not in MODES or given in (None, word):
        return []
    return [f"{word!r} and --mode={given} are different modes. Pass one of them."]


def explain_stray_words(line: CommandLine, *, mode: str) -> list[str]:
    """Returns errors for words that are neither flags nor their values.

    Suggestions name a mode, so that none trains by default.

    Args:
      mode: "" if none was given.
    """
    found = []
    if line.leading and line.leading not in MODES:
        near = difflib.get_close_matches(line.leading.lower(), MODES, n=1)
        hint = f"Did you mean {PROGRAM} {near[0]}?" if near else f"Modes: {_MODES}."
        found.append(f"{line.leading!r} is neither a mode nor a flag. {hint}")
    found += [_explain_stray(words, mode=mode) for words in line.stray]
    return list(dict.fromkeys(found))


_MODES = ", ".join(MODES)


def _explain_stray(words: Words, *, mode: str) -> str:
    first, before = words.text.split(" ")[0], words.before
    if first in MODES and not mode:
        return f"{first!r} is not a flag. The mode comes first: {PROGRAM} {first} …."
    if before and before.value and first not in MODES and "=" not in first:
        return (
            f"{words.text!r} is not a flag. Use quotes if it belongs to the value "
            f"before it: {before.written}='{before.value} {words.text}'."
        )
    return (
        f"{words.text!r} is not a flag. Pass one mode, and values with their flags, as "
        "--name=value; MODE --help lists them."
    )


def _fault(argument: Argument, *, mode: str) -> Fault | None:
    """Checks one flag; None if it is valid."""
    name, value, written = argument
    flag = FLAGS.get(name)
    key = flag.key if flag else name.removeprefix("config.")
    is_key = name.startswith("config.")
    if name != "config" and not flag and not (is_key and key in keys()):
        return Fault(_explain_unknown(argument, mode=mode), is_key)
    if value is None:
        return Fault(f"{written} needs a value. Pass {written}=VALUE.", is_key)
    if not value and (name in _NEVER_EMPTY or (flag and not flag.type.may_be_empty)):
        message = f"{written}= is empty. Pass a value, or leave {written} out."
        return Fault(message, False)
    kind = bool if flag and flag.type is SWITCH else type(defaults().get(key, ""))
    if kind is str or _parses(kind, value):
        return None
    keywords = "".join(f" or {word}" for word in KEYWORD_VALUES.get(name, {}))
    message = (
        f"{written}={printable(value)} must be {KINDS[kind]}{keywords}. "
        f"Change {written}."
    )
    return Fault(message, is_key or bool(key))


def _expand_keywords(flag: Argument) -> Argument:
    """Replaces a keyword of `KEYWORD_VALUES` by its number."""
    words = KEYWORD_VALUES.get(flag.name, {})
    return flag._replace(value=words.get(flag.value or "", flag.value))


def _parses(kind: type, value: str) -> bool:
    try:
        _PARSERS[kind].parse(value)
    except (ValueError, TypeError):
        return False
    return True


def _explain_unknown(argument: Argument, *, mode: str) -> str:
    """Returns the error of an unknown flag or key, with a suggestion."""
    name, _, written = argument
    key = name.removeprefix("config.")
    if key == name:
        return f"There is no flag {written}.{_flag_hint(name, mode=mode)}"
    if key in sections():
        return f"{written} is a section of keys. Pass a key; --help={key} lists them."
    return f"There is no key {name}.{_key_hint(key)}"


def _key_hint(key: str) -> str:
    if key in DERIVED:
        return f" It always equals config.{DERIVED[key]}."
    near = [f"--config.{name}" for name in key_suggestions(key, keys())]
    return f" Did you mean {alternatives(near)}?" if near else ""


def _flag_hint(name: str, *, mode: str) -> str:
    """Suggests a flag that the mode has, or a key of the configuration."""
    plain = name.replace("-", "_").lower()
    if plain in MODES:
        return f" Did you mean {PROGRAM} {plain} (--mode={plain})?"
    if mode in MODES and plain in flags_of(mode):
        return f" Did you mean --{plain}?"
    if name in keys():
        return f" Keys need the prefix config. Pass --config.{name}."
    if any(key.rpartition(".")[2] == plain for key in keys()):
        return _key_hint(plain)
    known = ["config", "mode", *(flags_of(mode) if mode in MODES else FLAGS)]
    near = difflib.get_close_matches(plain, known, n=1, cutoff=0.7)
    return f" Did you mean --{near[0]}?" if near else ""
