"""Splits lines that are too long for a model."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

Count: TypeAlias = Callable[[Sequence[str]], Sequence[int]]
"""Texts -> the number of subwords of each."""

_Span: TypeAlias = tuple[int, int]

# Code points, since many of these marks look like others. Quotes and brackets that
# close what a mark has ended:
_CLOSE = "[\"')\\]}\u00bb\u2018-\u201d\u203a\u3009\u300b\u300d\u300f\u3011\uff09]*+"
# Marks that need white space after them, so that 3.14 and 1,000 are not split. Each
# run of them is scanned once, however long it is.
_SPACED_END = f"(?<![.!?\u2026])[.!?\u2026]++{_CLOSE}(?=\\s)"
_SPACED_CLAUSE = f"(?<![;:,])[;:,]++{_CLOSE}(?=\\s)"
# Marks of scripts without that need: Chinese and Japanese, Devanagari, Arabic,
# Armenian, Ethiopic, Burmese, Khmer.
_END = (
    "[\u3002\uff0e\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u104b"
    f"\u17d4\u17d5]++{_CLOSE}"
)
# Those, Tibetan, and dashes and ellipses without white space.
_CLAUSE = (
    "[\uff0c\uff1b\uff1a\u3001\uff64\u060c\u061b\u1363-\u1366\u104a\u0f0d\u2014\u2026]"
    f"++{_CLOSE}"
)
_SENTENCES = f"{_SPACED_END}|{_END}"
_CLAUSES = f"{_SENTENCES}|{_SPACED_CLAUSE}|{_CLAUSE}"
SENTENCE_ENDS = re.compile(_SENTENCES)
"""Marks at the ends of sentences, with the quotes and brackets that follow them."""

# From the best positions to the worst.
_CUT_PATTERNS = (
    SENTENCE_ENDS,
    *map(re.compile, (_CLAUSES, rf"{_CLAUSES}|\s+")),
)

_JOINER = "\u200d"
_MAX_MARKS = 16


class Part(NamedTuple):
    """One part of a line.

    Attributes:
      text: without white space at its ends.
      before: the separator to the previous part: " ", or "" without white space, as in
        Chinese. "" for the first part.
    """

    text: str
    before: str


def split_line(line: str, *, longest: int, count: Count) -> list[Part]:
    """Splits a line into few parts of similar length.

    Splits at the ends of sentences; a sentence that is too long, at the marks between
    its clauses; a clause that is too long, at white space; and without white space,
    between any two characters. As many neighbours as fit make one part. A full
    stop after an abbreviation is taken for the end of a sentence.

    Only white space at the ends of parts is lost.

    Args:
      longest: maximum subwords of a part, at least 1.

    Returns:
      At least one part. None has more than `longest` subwords, except for a single
      character that has.

    Example:
      >>> def words(texts):
      ...     return [len(text.split()) for text in texts]
      >>> split_line("It rains. We stay at home.", longest=4, count=words)
      [Part(text='It rains.', before=''), Part(text='We stay at home.', before=' ')]
    """
    sizes = _Sizes(line, count)
    spans = _stripped_spans(line, [0, len(line)]) or [(0, 0)]
    for pattern in _CUT_PATTERNS:
        pieces = _cut_long_spans(
            spans, sizes, longest, cut=partial(_cut_at_matches, line, pattern)
        )
        spans = [
            (group[0][0], group[-1][1])
            for neighbours in pieces
            for group in _group_spans(neighbours, sizes, longest)
        ]

    def cut(span: _Span) -> list[_Span]:
        return _cut_evenly(line, span, math.ceil(sizes[span] / longest))

    before: list[_Span] = []
    while spans != before:
        before = spans
        pieces = _cut_long_spans(spans, sizes, longest, cut=cut)
        spans = [piece for cut_span in pieces for piece in cut_span]
    return [_part(line, span) for span in spans]


class _Sizes(dict[_Span, int]):
    """Caches the number of subwords of spans of a line."""

    def __init__(self, line: str, count: Count):
        super().__init__()
        self._line, self._count = line, count

    def add(self, spans: Iterable[_Span]) -> None:
        """Counts all new spans in one call."""
        new = [span for span in dict.fromkeys(spans) if span not in self]
        counted = self._count([self._line[start:end] for start, end in new])
        self.update(zip(new, counted, strict=True))


def _cut_long_spans(
    spans: list[_Span],
    sizes: _Sizes,
    longest: int,
    *,
    cut: Callable[[_Span], list[_Span]],
) -> list[list[_Span]]:
    """Cuts each span that is too long; returns the pieces of each."""
    sizes.add(spans)
    pieces = [cut(span) if sizes[span] > longest else [span] for span in spans]
    sizes.add(piece for cut_span in pieces for piece in cut_span)
    return pieces


def _group_spans(pieces: list[_Span], sizes: _Sizes, longest: int) -> list[list[_Span]]:
    """Groups neighbours into the fewest groups that fit, as even as possible."""

    def groups(most: int) -> list[list[_Span]]:
        made: list[list[_Span]] = []
        capacity = -1
        for piece in pieces:
            size = sizes[piece]
            # A piece that is too long gets a group of its own.
            if size > capacity:
                made.append([])
                capacity = most
            made[-1].append(piece)
            capacity -= size
        return made

    fewest = len(groups(longest))
    # Even groups: a short last part would be translated without context.
    most = bisect_left(range(longest + 1), -fewest, key=lambda most: -len(groups(most)))
    return groups(most)


def _cut_at_matches(line: str, pattern: re.Pattern[str], span: _Span) -> list[_Span]:
    """Cuts after each match."""
    start, end = span
    ends = [found.end() for found in pattern.finditer(line, start, end)]
    return _stripped_spans(line, [start, *ends, end])


def _cut_evenly(line: str, span: _Span, number: int) -> list[_Span]:
    """Cuts into `number` pieces of similar length, at least two if possible."""
    start, end = span
    number = min(max(number, 2), end - start)
    positions = [start + (end - start) * i // number for i in range(1, number)]
    return _stripped_spans(
        line, [start, *(_skip_combining_marks(line, at, end) for at in positions), end]
    )


def _skip_combining_marks(line: str, at: int, end: int) -> int:
    """Moves a position past the accents and joiners of the character before it."""
    for place in range(at, min(at + _MAX_MARKS, end)):
        is_mark = unicodedata.category(line[place]).startswith("M")
        if not is_mark and _JOINER not in line[place - 1 : place + 1]:
            return place
    return at


def _stripped_spans(line: str, ends: list[int]) -> list[_Span]:
    """Returns the spans between positions, without white space at their ends."""
    spans = []
    for start, end in pairwise(ends):
        text = line[start:end]
        if bare := text.strip():
            start += len(text) - len(text.lstrip())
            spans.append((start, start + len(bare)))
    return spans


def _part(line: str, span: _Span) -> Part:
    start, end = span
    follows_space = start > 0 and line[start - 1].isspace()
    is_first = not line[:start].strip()
    return Part(line[start:end], " " if follows_space and not is_first else "")
