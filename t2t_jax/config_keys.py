"""Answers to configuration keys that are unknown, former or derived."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from t2t_jax.data.config import FORMER_LAYOUTS

DERIVED = {
    "model.vocab_size": "vocabulary.size",
    "model.source_vocab_size": "vocabulary.source_size",
    "rnn.vocab_size": "vocabulary.size",
    "rnn.source_vocab_size": "vocabulary.source_size",
}
"""Key -> the key whose value it has. Not set, so that no number is declared twice."""

_RENAMED = {"data.row_halvings": "data.packed_row_lengths"}
"""Keys of version 0.1.0; halvings are one less than lengths."""


def alternatives(words: Sequence[str], *, word: str = "or") -> str:
    """Joins words to a list in prose.

    Example:
      >>> alternatives(["a", "b", "c"])
      'a, b or c'
    """
    return f" {word} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def similar(name: str, known: Sequence[str]) -> list[str]:
    """Finds known names that are similar to a wrong one.

    Args:
      name: the wrong name, `section.name` or `name`.

    Returns:
      Known names with the same last word, in the most similar section if one is similar
      enough; otherwise the name with the closest spelling, if any.

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
    # With a lower cutoff "file" would match "flagfile".
    return [
        tails[tail] for tail in difflib.get_close_matches(last, tails, n=1, cutoff=0.75)
    ]


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Returns " Did you mean …?" for similar known names, or "".

    Example:
      >>> did_you_mean("stps", ["steps", "seed"])
      ' Did you mean steps?'
    """
    near = similar(name, known)
    return f" Did you mean {alternatives(near)}?" if near else ""


def unknown_key(key: str, value: Any = None, *, known: Sequence[str]) -> str:
    """Returns the error about a key that does not exist.

    Args:
      key: `section.name` or `name`.
      value: that it was given; None if it is not known.
      known: all keys.

    Example:
      >>> unknown_key("stps", known=["steps", "seed"])
      'There is no key config.stps. Did you mean steps?'
    """
    return f"There is no key config.{key}.{suggestion(key, value, known=known)}"


def suggestion(key: str, value: Any = None, *, known: Sequence[str]) -> str:
    """Returns a suggestion for an unknown key, or ""; see `unknown_key`.

    Example:
      >>> suggestion("model.vocab_size", known=["vocabulary.size"])
      ' It always equals vocabulary.size.'
    """
    if key in DERIVED:
        return f" It always equals {DERIVED[key]}."
    if former := former_key(key, value):
        return former
    near = key_suggestions(key, known)
    return f" Did you mean {alternatives(near)}?" if near else ""


def former_key(key: str, value: Any, *, advice: str = "Set ") -> str:
    """Returns the answer to a key of version 0.1.0, or "".

    Args:
      value: that it was given, or its text.
      advice: introduces the key and value of today.

    Example:
      >>> former_key("data.row_halvings", "2", advice="Use ")[-43:]
      'more. Use config.data.packed_row_lengths=3.'
    """
    if key not in _RENAMED:
        return ""
    answer = f" It is config.{_RENAMED[key]} now, whose value is one more."
    if not str(value).isdecimal():
        return answer
    new, number = current_key(key, int(value))
    return f"{answer} {advice}config.{new}={number}."


def key_suggestions(name: str, known: Sequence[str]) -> list[str]:
    """Finds keys that are similar to a wrong one, `section.name` or `name`.

    Example:
      >>> key_suggestions("num_layers", ["model.num_layers", "rnn.num_layers"])
      ['model.num_layers']
    """
    # Names shared by both architectures suggest the Transformer's.
    usual = [key for key in known if not key.startswith("rnn.")]
    near = similar(name, known if name.startswith("rnn.") else usual)
    return near or similar(name, known)


def current_key(key: str, value: Any) -> tuple[str, Any]:
    """Returns the name and the value that a saved key, `section.name`, has today.

    Example:
      >>> current_key("data.row_halvings", 2)
      ('data.packed_row_lengths', 3)
      >>> current_key("data.layout", "length_groups")
      ('data.layout', 'length_buckets')
    """
    if key in _RENAMED and type(value) is int:
        return _RENAMED[key], value + 1
    if key == "data.layout":
        return key, FORMER_LAYOUTS.get(value, value)
    return key, value
