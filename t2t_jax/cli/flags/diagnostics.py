"""Judges the flags and words of a command line; equal mistakes share a message.

absl and ml_collections stop at the first mistake, with a traceback or the text of a
Python exception. Here all arguments are judged before these read them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from absl import flags

from t2t_jax.cli.flags.aliases import meant_by
from t2t_jax.cli.flags.arguments import Argument, CommandLine, Words, shown
from t2t_jax.cli.flags.modes import MODES
from t2t_jax.cli.flags.options import FLAGS
from t2t_jax.config import (
    KINDS,
    alternatives,
    defaults,
    key_suggestions,
    keys,
    sections,
)
from t2t_jax.config_files import is_directory, is_file

PROGRAM = "t2t-jax"
"""The command that is named in advice; `python -m t2t_jax` is the same."""

WORDS = {"config.training.micro_batches": {"auto": "0"}}
"""The words that some flags take in the place of a number."""

_NEVER_EMPTY = ("config", "mode", "checkpoint")
_TOO_SHORT = 2  # to be taken for a misspelling
_LISTED = 3
"""So many equal mistakes are listed one by one before they are counted."""

_PARSERS: dict[type, flags.ArgumentParser[Any]] = {
    int: flags.IntegerParser(),
    float: flags.FloatParser(),
    bool: flags.BooleanParser(),
}


class Fault(NamedTuple):
    """What is wrong with one flag.

    Attributes:
      cause: equal for the flags whose faults are one message.
      shown: the flag as the message names it.
      one: the message for this flag alone.
      many: what a message about several says after it has listed them.
      is_config: whether a key of the configuration is wrong.
    """

    cause: str
    shown: str
    one: str
    many: str
    is_config: bool


def faults(line: CommandLine, *, mode: str) -> tuple[list[Fault], list[Argument]]:
    """Judges every flag of a command line.

    Args:
      mode: its mode, for hints; "" if none was given.

    Returns:
      The faults, and the flags without any.
    """
    found, good = [], []
    for argument in line.flags:
        fault = _fault(argument, mode=mode)
        if fault:
            found.append(fault)
        else:
            good.append(argument)
    return found, good


def messages(found: Iterable[Fault]) -> list[str]:
    """Writes a message for each fault, or one for several that are equal.

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
        if len(alike) <= _LISTED:
            lines += [fault.one for fault in alike]
        else:
            lines.append(f"{enumerated([f.shown for f in alike])} {alike[0].many}")
    return lines


def enumerated(names: Sequence[str]) -> str:
    """Joins names; of many, the first three and a count.

    Example:
      >>> enumerated(["--a", "--b", "--c", "--d", "--e"])
      '--a, --b, --c and 2 more'
    """
    if len(names) <= _LISTED + 1:
        return alternatives(names, word="and")
    return f"{', '.join(names[:_LISTED])} and {len(names) - _LISTED} more"


def conflicting_modes(word: str, given: str | None) -> list[str]:
    """Names a leading mode and a `--mode` that differ, if they do."""
    if word not in MODES or given in (None, word):
        return []
    return [f"{word!r} and --mode={given} are different modes. Pass one of them."]


def about_words(line: CommandLine, *, mode: str) -> list[str]:
    """Explains the words that are neither flags nor their values.

    The advice never is a command line that would train: it names a mode.

    Args:
      mode: the mode that was given; "" if none was.
    """
    found = []
    if line.leading and line.leading not in MODES:
        found.append(_about_leading(line.leading))
    for words in line.stray:
        found.append(_about_stray(words, mode=mode))
    return list(dict.fromkeys(found))


def _about_leading(word: str) -> str:
    near = difflib.get_close_matches(word.lower(), MODES, n=1)
    if near:
        return f"{word!r} is not a mode. Did you mean {PROGRAM} {near[0]}?"
    if word == "version":
        return f"{word!r} is not a mode. Pass --version."
    return (
        f"{word!r} is neither a mode nor a flag. {_place_of(word, mode='')} "
        f"Modes: {', '.join(MODES)}."
    )


def _about_stray(words: Words, *, mode: str) -> str:
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
    return f"{words.text!r} is not a flag. {_place_of(first, mode=mode)}{named}"


def _place_of(word: str, *, mode: str) -> str:
    """Advises how to pass a word that may be a path, or a flag without dashes."""
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
    """Finds what is wrong with one flag, if anything is."""
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
    kind = bool if flag and flag.default == "false" else str
    if key in keys():
        kind = type(defaults()[key])
    if not value and (name in _NEVER_EMPTY or (flag and flag.rule == "path")):
        return Fault(
            "empty",
            f"{written}=",
            f"{written}= is empty. Pass a value, or leave {written} out.",
            "are empty. Pass values, or leave them out.",
            False,
        )
    if kind is str or _parses(kind, value):
        return None
    return Fault(
        f"type {kind.__name__}",
        f"{written}={shown(value)}",
        f"{written}={shown(value)} must be {KINDS[kind]}{_or_word(name)}. "
        f"Change {written}.",
        f"must each be {KINDS[kind]}. Change them.",
        is_key or bool(key),
    )


def _or_word(name: str) -> str:
    """Names the words that a flag takes in the place of a number."""
    return "".join(f" or {word}" for word in WORDS.get(name, {}))


def _parses(kind: type, value: str) -> bool:
    try:
        _PARSERS[kind].parse(value)
    except (ValueError, TypeError):
        return False
    return True


def _unknown(argument: Argument, *, mode: str) -> Fault:
    """Answers a flag or key that there is not with the one that was meant."""
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
    if plain == "nohelp":
        return ""
    meant, derived = key_suggestions(plain)
    if derived:
        return f" It always equals config.{derived}."
    flag, reason = meant_by(name, mode=mode)
    tail = plain.rpartition(".")[2]
    if flag and not (
        "." in plain and tail in {key.rpartition(".")[2] for key in keys()}
    ):
        if flag == "--workdir" and not mode:
            return f" Did you mean {PROGRAM} MODE {flag}? Without a MODE it trains."
        return f" Did you mean {flag}{f' ({reason})' if reason else ''}?"
    if len(plain) <= _TOO_SHORT:
        return ""
    if not name.startswith("config."):
        near = difflib.get_close_matches(plain.lower(), ["config", *FLAGS], n=1)
        if near and (near[0] == plain.lower() or tail not in _tails()):
            return f" Did you mean --{near[0]}?"
    if meant:
        return f" Did you mean {alternatives([f'--config.{key}' for key in meant])}?"
    near = difflib.get_close_matches(plain.lower(), FLAGS, n=1)
    return f" Did you mean --{near[0]}?" if near else ""


def _tails() -> set[str]:
    return {key.rpartition(".")[2] for key in keys()}
