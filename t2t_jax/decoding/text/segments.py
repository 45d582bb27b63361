"""Encodes lines into segments: lines, or parts of lines that are too long."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from t2t_jax.decoding.text.split_long_lines import split_line

_LOGGER = logging.getLogger(__name__)
# NUL is valid UTF-8 but does not occur in text: files full of it are mostly UTF-16.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class _Vocabulary(Protocol):
    def encode(self, lines: Sequence[str], /) -> list[list[int]]: ...


class Segment(NamedTuple):
    """A line, or a part of a long line, that is decoded as one sentence.

    Attributes:
      line: number of the line, from 0.
      part: number of the part in its line, from 0.
      subwords: ids without eos, at least one.
      before: separator between the translations of the previous part and this one.
      cut: whether subwords are missing at the end.
    """

    line: int
    part: int
    subwords: list[int]
    before: str = ""
    cut: bool = False


def make_segments(
    lines: Sequence[str], vocabulary: _Vocabulary, *, longest: int
) -> list[Segment]:
    """Encodes lines, and splits those that are too long.

    Args:
      lines: any text without line ends.
      longest: maximum subwords of a segment, without eos.

    Returns:
      The segments of non-blank lines, in the order of the lines.

    Example:
      >>> class Letters:
      ...     def encode(self, lines):
      ...         return [[ord(letter) for letter in line] for line in lines]
      >>> found = make_segments(["", "a b. c d"], Letters(), longest=4)
      >>> [(source.line, len(source.subwords), source.before) for source in found]
      [(1, 4, ''), (1, 3, ' ')]
    """
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    texts = [replace_lone_surrogates(lines[number]) for number in numbers]
    found: list[Segment] = []
    for number, text, ids in zip(numbers, texts, vocabulary.encode(texts), strict=True):
        if len(ids) > longest:
            found += _parts(number, text, vocabulary, longest=longest)
        elif ids:
            found.append(Segment(number, 0, list(ids)))
    return found


def _parts(
    line: int, text: str, vocabulary: _Vocabulary, *, longest: int
) -> list[Segment]:
    def count(texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in vocabulary.encode(texts)]

    parts = split_line(text, longest=longest, count=count)
    encoded = vocabulary.encode([part.text for part in parts])
    # A single character may exceed the limit, encoded as bytes.
    return [
        Segment(
            line,
            number,
            list(ids[:longest]),
            part.before if number else "",
            len(ids) > longest,
        )
        for number, (part, ids) in enumerate(
            (part, ids) for part, ids in zip(parts, encoded, strict=True) if ids
        )
    ]


def warn_truncated(sources: Sequence[Segment], num_lines: int, longest: int) -> None:
    """Logs how many lines were truncated, if any."""
    num_cut = len({source.line for source in sources if source.cut})
    if num_cut:
        _LOGGER.warning(
            "Truncated %d of %d lines with characters of more than %d subwords. Raise "
            "config.decoding.max_source_length to read them in full.",
            num_cut,
            num_lines,
            longest,
        )


def is_text(line: str) -> bool:
    r"""Returns whether a line was valid UTF-8 without NUL characters.

    Args:
      line: decoded with lone surrogates for invalid bytes.

    Example:
      >>> is_text("größe"), is_text("gr\udcf6\udcdfe"), is_text("a\0b")
      (True, False, False)
    """
    return _NO_TEXT.search(line) is None


def replace_lone_surrogates(line: str) -> str:
    r"""Replaces lone surrogates, which JSON allows and UTF-8 does not, by U+FFFD.

    Example:
      >>> ascii(replace_lone_surrogates("a\ud800"))
      "'a\\ufffd'"
    """
    return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
