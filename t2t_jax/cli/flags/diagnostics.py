"""Splits a command line, and checks its flags and words; equal errors share a message.

absl and ml_collections stop at the first error, with a traceback or the text of a
Python exception. So all arguments are checked before these parse them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from absl import flags

from t2t_jax.cli.flags.aliases import suggest_flag
from t2t_jax.cli.flags.arguments import Argument, CommandLine, Words, printable, split
from t2t_jax.cli.flags.modes import FLAGS, MODES
from t2t_jax.cli.flags.values import SWITCH
from t2t_jax.config import KINDS, defaults, keys, sections
from t2t_jax.config_files import is_directory, is_file
from t2t_jax.config_keys import (
    DERIVED,
    alternatives,
    key_suggestions,
)

PROGRAM = "t2t-jax"
"""The command in suggestions; `python -m t2t_jax` is equivalent."""

KEYWORD_VALUES = {"config.training.micro_batches": {"auto": "0"}}
"""Flag -> keywords that it accepts instead of a number, and their values."""

_NEVER_EMPTY = ("config", "mode", "checkpoint")
_TOO_SHORT = 2  # to guess a misspelling
_MAX_LISTED = 3
"""More equal errors than these share one message."""

_PARSERS: dict[type, flags.ArgumentParser[Any]] = {
    int: flags.IntegerParser(),
    float: flags.FloatParser(),
    bool: flags.BooleanParser(),
}


class Fault(NamedTuple):
    """An error of one flag.

    Attributes:
      cause: groups faults that can share a message.
      shown: the flag as named in the message.
      one: the message about this flag.
      many: the end of a message about several flags.
    """

    cause: str
    shown: str
    one: str
    many: str
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
      mode: for hints; "" if none was given.
    """
    checked = [(flag, _fault(flag, mode=mode)) for flag in line.flags]
    faults = [fault for _, fault in checked if fault]
    return faults, [flag for flag, fault in checked if not fault]


def messages(found: Iterable[Fault]) -> list[str]:
    """Formats a message for each fault, or one for many with the same cause.

    Example:
      >>> fault = Fault("x", "--a", "There is no --a.", "are not flags.", False)
      >>> messages([fault, fault])
      ['There is no --a.']
    """
    groups: dict[str, dict[str, Fault]] = {}
    for fault in found:
        groups.setdefault(fault.cause, {})[fault.one] = fault
    lines = []
    for group in groups.values():
        alike = list(group.values())
        if len(alike) <= _MAX_LISTED:
            lines += [fault.one for fault in alike]
        else:
            lines.append(f"{join_names([f.shown for f in alike])} {alike[0].many}")
    return lines


def join_names(names: Sequence[str]) -> str:
    """Joins names; of many, the first three and a count.

    Example:
      >>> join_names(["--a", "--b", "--c", "--d", "--e"])
      '--a, --b, --c and 2 more'
    """
    if len(names) <= _MAX_LISTED + 1:
        return alternatives(names, word="and")
    return f"{', '.join(names[:_MAX_LISTED])} and {len(names) - _MAX_LISTED} more"


def conflicting_modes(word: str, given: str | None) -> list[str]:
    """Returns an error if a leading mode and `--mode` differ."""
    if word not in MODES or given in (None, word):
        return []
    return [f"{word!r} and --mode={given} are different modes. Pass one of them."]


def explain_stray_words(line: CommandLine, *, mode: str) -> list[str]:
    """Returns errors for words that are neither flags nor their values.

    Suggestions always include a mode, so that none starts training by default.

    Args:
      mode: "" if none was given.
    """
    found = []
    if line.leading and line.leading not in MODES:
        found.append(_explain_leading(line.leading))
    for words in line.stray:
        found.append(_explain_stray(words, mode=mode))
    return list(dict.fromkeys(found))


def _explain_leading(word: str) -> str:
    near = difflib.get_close_matches(word.lower(), MODES, n=1)
    if near:
        return f"{word!r} is not a mode. Did you mean {PROGRAM} {near[0]}?"
    if word == "version":
        return f"{word!r} is not a mode. Pass --version."
    return (
        f"{word!r} is neither a mode nor a flag. {_suggestion(word, mode='')} "
        f"Modes: {', '.join(MODES)}."
    )


def _explain_stray(words: Words, *, mode: str) -> str:
    first, before = words.text.split(" ")[0], words.before
    near = difflib.get_close_matches(first.lower(), MODES, n=1, cutoff=0.8)
    if near and not mode:
        return (
            f"{first!r} is not a flag. The mode comes first: {PROGRAM} {near[0]} …, or "
            f"pass --mode={near[0]}."
        )
    if near:
        return f"{first!r} is not a flag, and the mode is {mode}. Pass one mode."
    if before and before.value and not is_file(first) and "=" not in first:
        program = "" if mode else f"{PROGRAM} MODE "
        return (
            f"{words.text!r} is not a flag. Use quotes if it belongs to the value "
            f"before it: {program}{before.written}='{before.value} {words.text}'."
        )
    named = f" The mode is {mode}." if mode else ""
    return f"{words.text!r} is not a flag. {_suggestion(first, mode=mode)}{named}"


def _suggestion(word: str, *, mode: str) -> str:
    """Suggests how to pass a word that may be a path, or a flag without dashes."""
    name, equals, value = word.partition("=")
    near = difflib.get_close_matches(name, FLAGS, n=1)
    if equals and near:
        return f"Pass --{near[0]}={value}{'' if mode else ' after a mode'}."
    if is_directory(word) or word.startswith("runs/"):
        use = f"--workdir={word}"
        return f"Pass {use}." if mode else f"Use {PROGRAM} translate {use}."
    if word.endswith(".py"):
        use = f"--config={word}"
        return f"Pass {use}." if mode else f"Use {PROGRAM} describe {use}."
    if mode == "translate" and "." in word:
        return f"Pass --input={word}."
    if is_file(word) and not mode:
        return f"Use {PROGRAM} translate --workdir=DIR --input={word}."
    if mode:
        return (
            "Pass values with their flags, as --name=value; "
            f"{PROGRAM} {mode} --help lists them."
        )
    return (
        f"Pass a mode, then flags as --name=value ({PROGRAM} translate --workdir=DIR); "
        "--help lists both."
    )


def _fault(argument: Argument, *, mode: str) -> Fault | None:
    """Checks one flag; None if it is valid."""
    name, value, written = argument
    flag = FLAGS.get(name)
    key = flag.key if flag else name.removeprefix("config.")
    is_key = name.startswith("config.")
    if name != "config" and not flag and not (is_key and key in keys()):
        return _unknown(argument, mode=mode)
    if value is None:
        return Fault(
            "value",
            written,
            f"{written} needs a value. Pass {written}=VALUE.",
            "need values. Pass each as --name=VALUE.",
            is_key,
        )
    kind = bool if flag and flag.type is SWITCH else str
    if key in keys():
        kind = type(defaults()[key])
    if not value and (name in _NEVER_EMPTY or (flag and not flag.type.may_be_empty)):
        return Fault(
            "empty",
            f"{written}=",
            f"{written}= is empty. Pass a value, or leave {written} out.",
            "are empty. Pass values, or leave them out.",
            False,
        )
    if kind is str or _parses(kind, value):
        return None
    keywords = "".join(f" or {word}" for word in KEYWORD_VALUES.get(name, {}))
    return Fault(
        f"type {kind.__name__}",
        f"{written}={printable(value)}",
        f"{written}={printable(value)} must be {KINDS[kind]}{keywords}. "
        f"Change {written}.",
        f"must each be {KINDS[kind]}. Change them.",
        is_key or bool(key),
    )


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


def _unknown(argument: Argument, *, mode: str) -> Fault:
    """Makes the fault of an unknown flag or key, with a suggestion."""
    name, value, written = argument
    is_key = name.startswith("config.")
    key = name.removeprefix("config.")
    section = key.rpartition(".")[0]
    noun = "key" if is_key else "flag"
    named = name if is_key else written
    if not is_key and name in keys():
        return Fault(
            "prefix",
            written,
            f"{written} needs the prefix of configuration keys. Pass --config.{name}.",
            "need the prefix of configuration keys. Pass each as --config.KEY=VALUE, "
            f"such as --config.{name}.",
            is_key,
        )
    if is_key and key in sections():
        return Fault(
            "section",
            written,
            f"{written} is a section of keys. Pass one of them; --help={key} lists "
            "them.",
            "are sections of keys. Pass a key of theirs; --help=SECTION lists them.",
            is_key,
        )
    hint = _hint(name, value, mode=mode)
    wrong_section = section and section not in sections()
    return Fault(
        f"section {section}" if wrong_section else f"unknown {noun}{hint}",
        named,
        f"There is no {noun} {named}.{hint}",
        f"are not {noun}s.{_section_hint(section) if wrong_section else hint}"
        f" --help={'all' if is_key else 'flags'} lists all {noun}s.",
        is_key,
    )


def _section_hint(section: str) -> str:
    near = difflib.get_close_matches(section.removeprefix("config."), sections(), n=1)
    return f" Did you mean --config.{near[0]}.KEY?" if near else ""


def _hint(name: str, value: str | None, *, mode: str) -> str:
    """Returns " Did you mean …?" for an unknown flag or key, or ""."""
    plain = name.removeprefix("config.").replace("-", "_")
    if plain.lower() in MODES:
        return f" Did you mean {PROGRAM} {plain.lower()} (--mode={plain.lower()})?"
    if plain in DERIVED:
        return f" It always equals config.{DERIVED[plain]}."
    meant = key_suggestions(plain, keys())
    flag, reason = suggest_flag(name, mode=mode)
    is_last_word = plain.rpartition(".")[2] in {k.rpartition(".")[2] for k in keys()}
    if flag and not ("." in plain and is_last_word):
        if flag == "--workdir" and not mode:
            return f" Did you mean {PROGRAM} MODE {flag}? Without a MODE it trains."
        return f" Did you mean {flag}{f' ({reason})' if reason else ''}?"
    if len(plain) <= _TOO_SHORT or plain == "nohelp":
        return ""
    if not name.startswith("config."):
        near = difflib.get_close_matches(plain.lower(), ["config", *FLAGS], n=1)
        if near and (near[0] == plain.lower() or not is_last_word):
            return f" Did you mean --{near[0]}?"
    if meant:
        return f" Did you mean {alternatives([f'--config.{key}' for key in meant])}?"
    near = difflib.get_close_matches(plain.lower(), FLAGS, n=1)
    return f" Did you mean --{near[0]}?" if near else ""
