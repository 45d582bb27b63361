"""Answers to configuration keys that are unknown or derived."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

DERIVED = {
    "model.vocab_size": "vocabulary.size",
    "model.source_vocab_size": "vocabulary.source_size",
    "rnn.vocab_size": "vocabulary.size",
    "rnn.source_vocab_size": "vocabulary.source_size",
}
"""Key -> the key whose value it has. Not set, so that no number is declared twice."""


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


def unknown_key(key: str, *, known: Sequence[str]) -> str:
    """Returns the error about a key that does not exist.

    Args:
      key: `section.name` or `name`.
      known: all keys.

    Example:
      >>> unknown_key("stps", known=["steps", "seed"])
      'There is no key config.stps. Did you mean steps?'
    """
    return f"There is no key config.{key}.{suggestion(key, known=known)}"


def suggestion(key: str, *, known: Sequence[str]) -> str:
    """Returns a suggestion for an unknown key, or ""; see `unknown_key`.

    Example:
      >>> suggestion("model.vocab_size", known=["vocabulary.size"])
      ' It always equals vocabulary.size.'
    """
    if key in DERIVED:
        return f" It always equals {DERIVED[key]}."
    near = key_suggestions(key, known)
    return f" Did you mean {alternatives(near)}?" if near else ""


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
