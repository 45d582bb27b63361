"""Subwords of tensor2tensor: the vocabulary files of the paper's own program.

A text is split where letters and digits meet other characters; each token ends in `_`,
and is cut into the longest subwords of the vocabulary from its beginning. A single
space between two words is not written.

Paper: §5.1 names word pieces for English-French; the program that was published with
the paper used these for both directions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, groupby

from t2t_jax.data.vocabulary.byte_pairs import LONGEST_KEPT
from t2t_jax.errors import DataError

_ESCAPE = re.compile(r"\\u|\\\\|\\([0-9]+);")
_ESCAPES = "\\_u;0123456789"


def read_subwords(text: str, *, name: str) -> list[str]:
    """Reads a vocabulary file: one subword a line, in quotes.

    Args:
      name: of the file, for messages.

    Raises:
      DataError: a line is not a subword in quotes.
    """
    subwords = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        line = line.strip()
        if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"":
            fault = f"{name}, line {number:,}: {line[:40]!r} is not a subword in quotes"
            raise DataError(f"{fault}. Pass a vocabulary file of tensor2tensor.")
        subwords.append(line[1:-1])
    return subwords


class SubwordEncoder:
    r"""Encodes text into subword ids, and back.

    Args:
      subwords: by id.
      num_reserved: the first ids, such as `<pad>` and `<EOS>`, to which no text is
        encoded.

    Raises:
      DataError: a character of the subwords is not a subword.

    Example:
      >>> words = ["<pad>", "<EOS>", "low", "er_", ", _", *" ,_elorw\\u;0123456789"]
      >>> encoder = SubwordEncoder(words, num_reserved=2)
      >>> encoder.encode("lower, low")
      [2, 3, 4, 2, 7]
      >>> encoder.decode([2, 3, 4, 2, 7])
      'lower, low'
    """

    def __init__(self, subwords: Sequence[str], *, num_reserved: int):
        self._subwords = list(subwords)
        own = self._subwords[num_reserved:]
        self._ids = {one: number for number, one in enumerate(own, num_reserved)}
        alphabet = set(_ESCAPES).union(*self._ids)
        if missing := sorted(alphabet - self._ids.keys()):
            raise DataError(
                "The vocabulary must have each of its characters as a subword, and has "
                f"no {', '.join(map(repr, missing[:5]))}. Pass a complete vocabulary "
                "file of tensor2tensor."
            )
        self._known = alphabet - {"\n"}
        self._longest = max(map(len, self._ids), default=0)
        self._cut_once = lru_cache(maxsize=1 << 16)(self._cut)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text."""
        return list(chain.from_iterable(map(self._encode_token, _tokens(text))))

    def _encode_token(self, token: str) -> tuple[int, ...]:
        return (self._cut_once if len(token) <= LONGEST_KEPT else self._cut)(token)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids."""
        joined = "".join(self._subwords[number] for number in ids)
        tokens = [_unescape(token) for token in joined.split("_")]
        text, ends_word = "", False
        for token in filter(None, tokens):
            is_word = _is_word(token[0])
            text += " " * (ends_word and is_word) + token
            ends_word = is_word
        return text

    def _cut(self, token: str) -> tuple[int, ...]:
        """Cuts a token into the longest subwords, from its beginning."""
        escaped = token.replace("\\", r"\\").replace("_", r"\u")
        known, ids = self._known, []
        rest = "".join(c if c in known else f"\\{ord(c)};" for c in escaped) + "_"
        start = 0
        while start < len(rest):
            ends = range(min(start + self._longest, len(rest)), start, -1)
            end = next(end for end in ends if rest[start:end] in self._ids)
            ids.append(self._ids[rest[start:end]])
            start = end
        return tuple(ids)


def _tokens(text: str) -> list[str]:
    """Splits a text where words meet other characters; drops single spaces between."""
    tokens = ["".join(some) for _, some in groupby(text, _is_word)]
    inner = [token for token in tokens[1:-1] if token != " "]
    return [*tokens[:1], *inner, *tokens[1:][-1:]]


@lru_cache(maxsize=1 << 16)
def _is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


def _unescape(token: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return "_" if match[0] == r"\u" else "\\"
        try:
            return chr(int(match[1]))
        except (OverflowError, ValueError):
            return "\u3013"  # as tensor2tensor writes what is no character

    return _ESCAPE.sub(replace, token)
