"""Divides texts into sentences, and lines that are too long for a model into parts."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Translation

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
_CUT_PATTERNS = (SENTENCE_ENDS, re.compile(_CLAUSES), re.compile(rf"{_CLAUSES}|\s+"))

_JOINER = "\u200d"
_MAX_MARKS = 16

_LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
BREAKS = re.compile(f"{_SENTENCES}|{_LINE_ENDS.pattern}")
"""What a text of several sentences has between them."""

_LAST_WORD = re.compile(r"[^\s(\[\"'\u201c\u201e\u2018\u00ab]+\Z")
# What a full stop after it does not end a sentence: titles, and abbreviations that are
# followed by capitals or numbers in English, German, French or Spanish.
_ABBREVIATIONS = frozenset(
    "approx art bd bzw ca capt cf co col dept dr dra ed eds etc evtl ex fig gen ggf "
    "gov hr inc jr lt ltd max messrs min mio mlle mme mr mrd mrs ms mt nr no nos op "
    "pp prof rev sec sen sgt sr sra srta st str tel univ usw vgl vol vs".split()
)


class Sentence(NamedTuple):
    """A sentence of a text.

    Attributes:
      gap: the white space before it.
    """

    gap: str
    text: str


class Layout(NamedTuple):
    """A text as its sentences, and the white space after the last."""

    sentences: tuple[Sentence, ...]
    end: str

    @property
    def marked(self) -> frozenset[int]:
        """Numbers of the sentences with markup inside: none."""
        return frozenset()

    def fill(self, translations: Sequence[Translation], *, rank: int = 0) -> str:
        """Joins the translations of the sentences with the white space of the text.

        Args:
          rank: of the hypotheses that are taken; of those that have fewer, the last.
        """
        texts = [
            one.gap + found.hypotheses[min(rank, len(found.hypotheses) - 1)].text
            for one, found in zip(self.sentences, translations, strict=True)
        ]
        return "".join([*texts, self.end])


def lay_out(text: str, *, split: str) -> Layout:
    r"""Divides a text.

    Args:
      split: `sentences`, or `lines` for the lines as they are.

    Example:
      >>> layout = lay_out("It rains. Mr. Fox\nsleeps.", split="sentences")
      >>> [one.text for one in layout.sentences]
      ['It rains.', 'Mr. Fox', 'sleeps.']
    """
    ends = [match.end() for match in _LINE_ENDS.finditer(text)]
    spans = _stripped_spans(text, [0, *ends, len(text)])
    if split == "sentences":
        spans = [one for span in spans for one in _sentences(text, *span)]
    found, position = [], 0
    for start, end in spans:
        found.append(Sentence(text[position:start], text[start:end]))
        position = end
    return Layout(tuple(found), text[position:])


def _sentences(text: str, start: int, end: int) -> list[_Span]:
    """Lists the spans of the sentences of a line."""
    ends = [start]
    for match in SENTENCE_ENDS.finditer(text, start, end):
        if match.end() < end and _is_end(text, ends[-1], match):
            ends.append(match.end())
    return _stripped_spans(text, [*ends, end])


def _is_end(text: str, begin: int, match: re.Match[str]) -> bool:
    """Returns whether a mark ends a sentence, and not an abbreviation or a number."""
    if not match[0].startswith((".", "\u2026")):
        return True
    following = text[match.end() : match.end() + 64].lstrip()
    if following[:1].islower():
        return False
    if match[0] != ".":
        return True
    word = _LAST_WORD.search(text[max(begin, match.start() - 40) : match.start()])
    if word is None:
        return True
    # Initials such as J. or z. B., ordinals such as 3., abbreviations such as Dr.
    is_initial = len(word[0].rpartition(".")[2]) == 1 and word[0][-1].isalpha()
    is_ordinal = word[0].isdecimal() and len(word[0]) <= 2
    return not (is_initial or is_ordinal or word[0].lower() in _ABBREVIATIONS)


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
    sizes: dict[_Span, int] = {}

    def measure(spans: list[_Span]) -> None:
        new = [span for span in spans if span not in sizes]
        counts = count([line[start:end] for start, end in new])
        sizes.update(zip(new, counts, strict=True))

    def fit(spans: list[_Span], patterns: Sequence[re.Pattern[str]]) -> Iterator[_Span]:
        measure(spans)
        for span in spans:
            if sizes[span] <= longest:
                yield span
            elif patterns:
                ends = (found.end() for found in patterns[0].finditer(line, *span))
                pieces = _stripped_spans(line, [span[0], *ends, span[1]])
                measure(pieces)
                yield from fit(_group_spans(pieces, sizes, longest), patterns[1:])
            elif (cut := _cut_evenly(line, span, sizes[span] / longest)) != [span]:
                yield from fit(cut, ())
            else:  # a single character
                yield span

    whole = _stripped_spans(line, [0, len(line)]) or [(0, 0)]
    return [
        Part(line[start:end], " " if number and line[start - 1].isspace() else "")
        for number, (start, end) in enumerate(fit(whole, _CUT_PATTERNS))
    ]


def _group_spans(
    pieces: list[_Span], sizes: Mapping[_Span, int], longest: int
) -> list[_Span]:
    """Joins neighbours to the fewest spans that fit, as even as possible."""

    def groups(most: int) -> list[_Span]:
        made: list[_Span] = []
        capacity = -1
        for piece in pieces:
            # A piece that is too long stays by itself.
            if sizes[piece] > capacity:
                made.append(piece)
                capacity = most
            made[-1] = (made[-1][0], piece[1])
            capacity -= sizes[piece]
        return made

    fewest = len(groups(longest))
    # Even groups: a short last part would be translated without context.
    most = bisect_left(range(longest + 1), -fewest, key=lambda most: -len(groups(most)))
    return groups(most)


def _cut_evenly(line: str, span: _Span, parts: float) -> list[_Span]:
    """Cuts into so many pieces of similar length, at least two if possible."""
    start, end = span
    number = min(max(math.ceil(parts), 2), end - start)
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
