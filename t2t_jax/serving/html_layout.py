"""Puts translations into the markup of HTML; inline elements follow their words."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from t2t_jax.decoding.text.sentences import Sentence, lay_out
from t2t_jax.serving.html_markup import Segment, read_html

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Hypothesis, Translation

_UNITS = re.compile(r"\w+|[^\w\s]")
_SPACE = "\u2581"
# Deeper or longer elements are kept, but not moved with the words.
_MAX_DEPTH = 16
_MAX_TAG = 2_000

Span: TypeAlias = tuple[int, int]
Elements: TypeAlias = tuple[int, ...]
"""The inline elements around a character, by number, the outermost first."""


class HtmlLayout:
    """A document as its sentences, its markup, and the elements of each character.

    Args:
      max_aligned (characters): longest sentence whose markup follows the attention
        weights, which grow with the square of its length; in longer ones it keeps its
        share.

    Attributes:
      sentences: with the white space before each; markup is in none.
      end: "".
      marked: numbers of the sentences with markup inside, whose translations need
        attention weights.
    """

    end = ""

    def __init__(self, document: str, *, split: str, max_aligned: int = 1_000):
        self._parts: list[str | _Filler] = []
        sentences: list[Sentence] = []
        marked: set[int] = set()
        for part in read_html(document):
            if isinstance(part, str):
                self._parts.append(part)
                continue
            filler = _Filler(part, split)
            for number, (start, end) in enumerate(filler.spans, len(sentences)):
                if filler.has_marks(start, end) and end - start <= max_aligned:
                    marked.add(number)
            sentences += filler.sentences
            self._parts.append(filler)
        self.sentences = tuple(sentences)
        self.marked = frozenset(marked)

    def fill(self, translations: Sequence[Translation], *, rank: int = 0) -> str:
        """Replaces the sentences by their translations.

        Args:
          rank: of the hypotheses that are taken; of those that have fewer, the last.
        """
        following = iter(translations)
        return "".join(
            part
            if isinstance(part, str)
            else part.fill([next(following) for _ in part.sentences], rank)
            for part in self._parts
        )


class _Filler:
    """A segment with its sentences.

    Attributes:
      spans: of the sentences.
      at: the elements of each character, and of the end.
      pairs: start and end tag of each element, and the position of the latter.
      points: markup that is around no character, by position, each with the elements
        around it.
    """

    def __init__(self, segment: Segment, split: str):
        self.text, self.original = segment.text, segment.original
        self.sentences = lay_out(segment.text, split=split).sentences
        ends = accumulate(len(one.gap) + len(one.text) for one in self.sentences)
        self.spans = [
            (end - len(one.text), end)
            for one, end in zip(self.sentences, ends, strict=True)
        ]
        self.at: list[Elements] = []
        self.pairs: list[tuple[str, str, int]] = []
        self.points: dict[int, list[tuple[str, Elements]]] = {}
        self._places = [position for position, _ in segment.marks]
        self._place(segment)

    def _place(self, segment: Segment) -> None:
        """Finds the elements of each character."""
        opened: list[int] = []
        partners, closing = _partners(segment), set()
        for number, (position, piece) in enumerate(segment.marks):
            self.at += [tuple(opened)] * (position - len(self.at))
            end, partner = segment.marks[partners.get(number, number)]
            is_moved = end > position and len(piece.raw) <= _MAX_TAG
            if is_moved and len(opened) < _MAX_DEPTH:
                opened.append(len(self.pairs))
                self.pairs.append((piece.raw, partner.raw, end))
                closing.add(partners[number])
            elif number in closing:
                opened.pop()
            else:
                point = (piece.raw, tuple(opened))
                self.points.setdefault(position, []).append(point)
        self.at += [()] * (len(self.text) + 1 - len(self.at))

    def has_marks(self, start: int, end: int) -> bool:
        """Returns whether there is markup inside a span, not only at its ends."""
        first = bisect_right(self._places, start)
        return first < len(self._places) and self._places[first] < end

    def fill(self, translations: Sequence[Translation], rank: int) -> str:
        writer = _Writer(self)
        position = 0
        for (start, end), found in zip(self.spans, translations, strict=True):
            self._write_characters(writer, position, start)
            hypothesis = found.hypotheses[min(rank, len(found.hypotheses) - 1)]
            if self.has_marks(start, end):
                self._write_marked(writer, (start, end), hypothesis, found)
            else:
                writer.write_points((start,))
                writer.write(hypothesis.text, self.at[start])
            position = end
        self._write_characters(writer, position, len(self.text))
        return writer.finish()

    def _write_characters(self, writer: _Writer, start: int, end: int) -> None:
        for place in range(start, end):
            writer.write_points((place,))
            writer.write(self.original[place], self.at[place])

    def _write_marked(
        self, writer: _Writer, span: Span, hypothesis: Hypothesis, found: Translation
    ) -> None:
        """Writes each unit of a translation in the elements of its source unit."""
        target, written = hypothesis.text, 0
        sources, targets = _units_of(self.text, *span), _units_of(target)
        links = _links(self.text, sources, found.source_tokens, targets, hypothesis)
        for (start, end), link in zip(targets, links, strict=True):
            begin, stop = sources[link]
            before = sources[link - 1][1] if link else span[0]
            writer.write_points((before,))
            writer.space += html.escape(target[written:start], quote=False)
            if writer.write_points(range(before + 1, begin)):
                writer.space += " "  # white space on both sides
            writer.write_points(range(begin, stop))
            if target[start:end] == self.text[begin:stop]:
                for place in range(begin, stop):
                    writer.write(self.text[place], self.at[place])
            else:
                around = Counter(self.at[begin:stop]).most_common(1)[0][0]
                writer.write(target[start:end], around)
            written = end
        writer.space += html.escape(target[written:], quote=False)
        writer.write_points(range(*span))
        writer.write_unused(span[1])


def _partners(segment: Segment) -> dict[int, int]:
    """Returns the number of the end tag of each start tag that has one.

    A tag that closes another element than the last has no partner.
    """
    found, opened = {}, []
    for number, (_, piece) in enumerate(segment.marks):
        if piece.kind == "open":
            opened.append((number, piece.name))
        elif piece.kind == "close" and opened and opened[-1][1] == piece.name:
            found[opened.pop()[0]] = number
    return found


class _Writer:
    """Writes text, and opens and closes elements around it.

    Attributes:
      space: white space before what is written next, in the elements that both its
        neighbours are in.
    """

    def __init__(self, filler: _Filler):
        self._pairs, self._points = filler.pairs, dict(filler.points)
        ends = ((end, number) for number, (_, _, end) in enumerate(filler.pairs))
        self._unused = sorted(ends, reverse=True)
        self._used: set[int] = set()
        self._open: Elements = ()
        self.space = ""
        self._written: list[str] = []

    def write(self, text: str, elements: Elements) -> None:
        """Writes text that is inside these elements."""
        self._move_to(elements)
        self._used.update(elements)
        self._written.append(html.escape(text, quote=False))

    def _move_to(self, elements: Elements) -> None:
        """Closes and opens elements until these are open."""
        shared = 0
        while self._open[shared : shared + 1] == elements[shared : shared + 1] != ():
            shared += 1
        self._written += [self._pairs[n][1] for n in reversed(self._open[shared:])]
        self._written.append(self.space)
        self._written += [self._pairs[n][0] for n in elements[shared:]]
        self._open, self.space = elements, ""

    def write_points(self, places: Iterable[int]) -> bool:
        """Writes the markup at these positions; returns whether there was any."""
        before = len(self._points)
        for place in places:
            for raw, elements in self._points.pop(place, ()):
                self._move_to(elements)
                self._written.append(raw)
        return len(self._points) < before

    def write_unused(self, position: int) -> None:
        """Writes elements that end here and that no word is in."""
        while self._unused and self._unused[-1][0] <= position:
            _, number = self._unused.pop()
            if number not in self._used:
                self._written += self._pairs[number][:2]

    def finish(self) -> str:
        """Closes all elements, and returns what was written."""
        self.write_points(sorted(self._points))
        self._move_to(())
        self.write_unused(max((end for end, _ in self._unused), default=0))
        return "".join(self._written)


def _units_of(text: str, *span: int) -> list[Span]:
    """Lists the spans of words and punctuation."""
    return [match.span() for match in _UNITS.finditer(text, *span)]


def _links(
    source: str,
    sources: Sequence[Span],
    source_tokens: Sequence[str],
    targets: Sequence[Span],
    hypothesis: Hypothesis,
) -> list[int]:
    """Returns the number of the source unit of each target unit.

    It is that with which most tokens of the unit are aligned. A unit without one has
    that of the unit before; without any alignment they are linked in proportion.
    """
    target = hypothesis.text
    source_unit = _unit_of_tokens(source, source_tokens, sources)
    target_unit = _unit_of_tokens(target, hypothesis.tokens, targets)
    votes: dict[int, Counter[int]] = {}
    for from_token, to_token in hypothesis.alignment():
        if from_token in source_unit and to_token in target_unit:
            vote = votes.setdefault(target_unit[to_token], Counter())
            vote[source_unit[from_token]] += 1
    if not votes:
        return [number * len(sources) // len(targets) for number in range(len(targets))]
    known = {number: vote.most_common(1)[0][0] for number, vote in votes.items()}
    link = known[min(known)]
    filled: list[int] = []
    for number, (start, end) in enumerate(targets):
        if number not in known and filled and link + 1 < len(sources):
            # Punctuation that shares its token with a word.
            begin, stop = sources[link + 1]
            link += source[begin:stop] == target[start:end]
        link = known.get(number, link)
        filled.append(link)
    return filled


def _unit_of_tokens(
    text: str, tokens: Sequence[str], units: Sequence[Span]
) -> dict[int, int]:
    """Finds the unit in which each token begins, if the text holds the token."""
    starts, found = [start for start, _ in units], {}
    position = starts[0] if starts else 0
    for number, token in enumerate(tokens if units else ()):
        piece = token.replace(_SPACE, " ").strip()
        # Not far away: a token that was normalized is not found, others after it are.
        place = text.find(piece, position, position + len(piece) + 32)
        if piece and place >= 0:
            found[number] = max(0, bisect_right(starts, place) - 1)
            position = place + len(piece)
    return found
