"""Which brackets count and which labels are equal: EVALB's parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from t2t_jax.data.files.lines import read_lines
from t2t_jax.errors import DataError

_TERMS_OF_QUOTES = ("'", '"', "/")
_NO_EFFECT = ("DEBUG", "MAX_ERROR")
_KEYS = {
    "DELETE_LABEL": "deleted",
    "DELETE_LABEL_FOR_LENGTH": "deleted_for_length",
    "QUOTE_LABEL": "quotes",
    "EQ_LABEL": "equal_labels",
    "EQ_WORD": "equal_words",
    "LABELED": "labeled",
    "CUTOFF_LEN": "cutoff_length",
}


@dataclass(frozen=True)
class Parameters:
    """Rules of a comparison; without arguments, EVALB's without a parameter file.

    Attributes:
      labeled: whether labels must be equal, and not the spans alone.
      cutoff_length: words of the longest sentence of the second summary.
      deleted: labels of brackets that do not count. A word with such a tag is left
        out with its tag.
      deleted_for_length: tags of words that are not counted in a sentence's length.
      quotes: tags of quotation marks and of the possessive, which taggers confuse.
        Where one of the two trees loses such a word by `deleted`, it is put back.
      equal_labels: pairs of labels that are equal.
      equal_words: pairs of words that are equal.
    """

    labeled: bool = True
    cutoff_length: int = 40
    deleted: tuple[str, ...] = ()
    deleted_for_length: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    equal_labels: tuple[tuple[str, str], ...] = ()
    equal_words: tuple[tuple[str, str], ...] = ()

    def same_label(self, a: str, b: str) -> bool:
        """Compares labels of brackets, or tags of words."""
        return a == b or (a, b) in self.equal_labels or (b, a) in self.equal_labels

    def same_word(self, a: str, b: str) -> bool:
        """Compares words."""
        return a == b or (a, b) in self.equal_words or (b, a) in self.equal_words

    def is_quote(self, tag: str, word: str) -> bool:
        """Returns whether a word may be a quotation mark to one tagger only."""
        return tag in self.quotes and word in _TERMS_OF_QUOTES


STANDARD = Parameters(
    deleted=("TOP", "ROOT", "S1", "-NONE-", ",", ":", "``", "''", ".", "?", "!"),
    deleted_for_length=("-NONE-",),
    quotes=("''", "``", "POS"),
    equal_labels=(("ADVP", "PRT"),),
)
"""The usual rules for Penn treebanks: no punctuation, no root, ADVP equal to PRT."""


def load_parameters(value: str) -> Parameters:
    """Returns the parameters that a flag names.

    Args:
      value: "standard", a parameter file, or "" for those of EVALB without a file.

    Raises:
      DataError, InputMissingError: as `read_parameters` does.
    """
    if value == "standard":
        return STANDARD
    return read_parameters(value) if value else Parameters()


def read_parameters(path: str | Path) -> Parameters:
    """Reads a parameter file of EVALB (`.prm`).

    `DEBUG` and `MAX_ERROR` have no effect: every sentence is scored.

    Raises:
      DataError: an unknown parameter, or a value that is not one.
      InputMissingError: the file does not exist.
    """
    found = Parameters()
    for number, line in enumerate(read_lines(path), start=1):
        text = line.rstrip()
        if text.startswith("#") or len(text) < 2:
            continue
        # Where there is a tab, any blank ends the name.
        name, *rest = text.split(None if "\t" in text else " ", maxsplit=1)
        try:
            found = _with(found, name, "".join(rest).strip())
        except ValueError as error:
            raise DataError(f"{path}: line {number}: {error}") from error
    return found


def _with(parameters: Parameters, name: str, value: str) -> Parameters:
    """Returns the parameters with one line of a file added.

    Raises:
      ValueError: the line is not one of a parameter file.
    """
    if not value:
        raise ValueError(f"{name} has no value. Add one.")
    if name in _NO_EFFECT:
        return parameters
    if name not in _KEYS:
        known = ", ".join((*_KEYS, *_NO_EFFECT))
        raise ValueError(f"unknown parameter {name!r}. Use one of {known}.")
    key = _KEYS[name]
    before, more = getattr(parameters, key), tuple(value.split())
    found: Any = (*(before if isinstance(before, tuple) else ()), value)
    if key in ("equal_labels", "equal_words"):
        if len(more) != 2:
            raise ValueError(f"{name} takes two values, found {len(more)}.")
        found = (*before, more)
    elif not isinstance(before, tuple):
        if not value.isdecimal():
            raise ValueError(f"{name} takes a number, found {value!r}.")
        found = type(before)(int(value))
    return replace(parameters, **{key: found})
