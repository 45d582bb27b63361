"""Puts translations into the markup of HTML; inline elements follow their words."""

from __future__ import annotations

import bisect
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from t2t_jax.decoding.text.sentences import Layout, Sentence, lay_out
from t2t_jax.serving.html_markup import Mark, Segment, read_html

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Hypothesis, Translation

_UNITS = re.compile(r"\w+|[^\w\s]")
_SPACE = "\u2581"

Elements: TypeAlias = tuple[int, ...]
"""The inline elements around a character, by number, the outermost first."""


class _Span(NamedTuple):
    """A sentence of a segment."""

    start: int
    end: int


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

    def __init__(self, document: str, *, split: str, max_aligned: int = 1_000):
        self.end = ""
        self._parts: list[str | _SegmentLayout] = []
        sentences: list[Sentence] = []
        marked: set[int] = set()
        for part in read_html(document):
            if isinstance(part, str):
                self._parts.append(part)
                continue
            layout = _SegmentLayout(part, lay_out(part.text, split=split))
            marked.update(
                len(sentences) + number
                for number in layout.marked()
                if len(layout.sentences[number].text) <= max_aligned
            )
            sentences += layout.sentences
            self._parts.append(layout)
        self.sentences = tuple(sentences)
        self.marked = frozenset(marked)

    def fill(self, translations: Sequence[Translation], *, rank: int = 0) -> str:
        """Replaces the sentences by their translations.

        Args:
          rank: of the hypotheses that are taken; of those that have fewer, the last.
        """
        written, following = [], iter(translations)
        for part in self._parts:
            if isinstance(part, str):
                written.append(part)
            else:
                found = [next(following) for _ in part.sentences]
                written.append(part.fill(found, rank))
        return "".join(written)


class _SegmentLayout:
    """A segment with its sentences."""

    def __init__(self, segment: Segment, layout: Layout):
        self.sentences = layout.sentences
        self._text, self._original = segment.text, segment.original
        self._elements = _Elements(segment)
        self._spans: list[_Span] = []
        position = 0
        for one in layout.sentences:
            start = position + len(one.gap)
            position = start + len(one.text)
            self._spans.append(_Span(start, position))

    def marked(self) -> list[int]:
        """Lists the sentences with markup inside."""
        return [n for n, one in enumerate(self._spans) if self._elements.any_in(*one)]

    def fill(self, translations: Sequence[Translation], rank: int) -> str:
        writer = _Writer(self._elements)
        position = 0
        for span, found in zip(self._spans, translations, strict=True):
            self._write_gap(writer, position, span.start)
            hypothesis = found.hypotheses[min(rank, len(found.hypotheses) - 1)]
            if self._elements.any_in(*span):
                self._write_marked(writer, span, hypothesis, found.source_tokens)
            else:
                writer.write_points((span.start,))
                writer.write(hypothesis.text, self._elements.at[span.start])
            position = span.end
        self._write_gap(writer, position, len(self._text))
        return writer.finish()

    def _write_gap(self, writer: _Writer, start: int, end: int) -> None:
        for place in range(start, end):
            writer.write_points((place,))
            writer.write(self._original[place], self._elements.at[place])

    def _write_marked(
        self,
        writer: _Writer,
        span: _Span,
        hypothesis: Hypothesis,
        source_tokens: Sequence[str],
    ) -> None:
        """Writes each unit of a translation in the elements of its source unit."""
        source, target = self._text[span.start : span.end], hypothesis.text
        sources, targets = _units_of(source), _units_of(target)
        links = _links(source, sources, source_tokens, targets, hypothesis)
        written = 0
        for (start, end), link in zip(targets, links, strict=True):
            begin, stop = (span.start + place for place in sources[link])
            before = span.start + (sources[link - 1][1] if link else 0)
            writer.write_points((before,))
            writer.write_space(target[written:start])
            if writer.write_points(range(before + 1, begin)):
                writer.write_space(" ")  # white space on both sides
            writer.write_points(range(begin, stop))
            word = target[start:end]
            if word == self._text[begin:stop]:
                for place, character in enumerate(word, start=begin):
                    writer.write(character, self._elements.at[place])
            else:
                writer.write(word, self._elements.most_common(begin, stop))
            written = end
        writer.write_space(target[written:])
        writer.write_points(range(span.start, span.end))
        writer.write_unused(span.end)


class _Elements:
    """The inline elements of a segment.

    Attributes:
      at: of each character, and of the end.
      pairs: start and end tag, and the position of the latter, by number.
      points: markup that is around no character, by position, each with the elements
        around it.
    """

    def __init__(self, segment: Segment):
        self.at: list[Elements] = []
        self.pairs: list[tuple[str, str, int]] = []
        self.points: dict[int, list[tuple[str, Elements]]] = {}
        self._places = [mark.position for mark in segment.marks]
        opened: list[int] = []
        for mark, partner in zip(segment.marks, _partners(segment.marks), strict=True):
            self.at += [tuple(opened)] * (mark.position - len(self.at))
            if partner is None or partner.position == mark.position:
                point = (mark.raw, tuple(opened))
                self.points.setdefault(mark.position, []).append(point)
            elif mark.kind == "open":
                opened.append(len(self.pairs))
                self.pairs.append((mark.raw, partner.raw, partner.position))
            else:
                opened.pop()
        self.at += [()] * (len(segment.text) + 1 - len(self.at))

    def any_in(self, start: int, end: int) -> bool:
        """Returns whether there is markup inside a span, not only at its ends."""
        first = bisect.bisect_right(self._places, start)
        return first < len(self._places) and self._places[first] < end

    def most_common(self, start: int, end: int) -> Elements:
        return Counter(self.at[start:end]).most_common(1)[0][0]


def _partners(marks: Sequence[Mark]) -> list[Mark | None]:
    """Returns the other tag of each mark's element; None of marks without one."""
    found: list[Mark | None] = [None] * len(marks)
    opened: list[int] = []
    for number, mark in enumerate(marks):
        if mark.depth >= 0 and mark.kind == "open":
            opened.append(number)
        elif mark.depth >= 0:
            begin = opened.pop()
            found[begin], found[number] = mark, marks[begin]
    return found


class _Writer:
    """Writes text, and opens and closes elements around it."""

    def __init__(self, elements: _Elements):
        self._pairs, self._points = elements.pairs, dict(elements.points)
        self._ends = sorted((end, n) for n, (_, _, end) in enumerate(elements.pairs))
        self._next_end = 0
        self._used: set[int] = set()
        self._open: Elements = ()
        self._space = ""
        self._written: list[str] = []

    def write(self, text: str, elements: Elements) -> None:
        """Writes text that is inside these elements."""
        self._move_to(elements)
        self._used.update(elements)
        self._written.append(html.escape(text, quote=False))

    def _move_to(self, elements: Elements) -> None:
        """Closes and opens elements until these are open."""
        shared = 0
        for one, other in zip(self._open, elements, strict=False):
            if one != other:
                break
            shared += 1
        self._written += [self._pairs[n][1] for n in reversed(self._open[shared:])]
        self._written.append(self._space)
        self._space = ""
        self._written += [self._pairs[n][0] for n in elements[shared:]]
        self._open = elements

    def write_space(self, text: str) -> None:
        """Writes white space, in the elements that both its neighbours are in."""
        self._space += html.escape(text, quote=False)

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
        while self._next_end < len(self._ends):
            end, number = self._ends[self._next_end]
            if end > position:
                break
            self._next_end += 1
            if number not in self._used:
                self._written += self._pairs[number][:2]

    def finish(self) -> str:
        """Closes all elements, and returns what was written."""
        self.write_points(sorted(self._points))
        self._move_to(())
        self.write_unused(max((end for end, _ in self._ends), default=0))
        return "".join(self._written)


def _units_of(text: str) -> list[tuple[int, int]]:
    """Lists the spans of words and punctuation."""
    return [match.span() for match in _UNITS.finditer(text)]


def _links(
    source: str,
    sources: Sequence[tuple[int, int]],
    source_tokens: Sequence[str],
    targets: Sequence[tuple[int, int]],
    hypothesis: Hypothesis,
) -> list[int]:
    """Returns the number of the source unit of each target unit.

    It is that with which most tokens of the unit are aligned. A unit without one has
    that of the unit before; without any alignment they are linked in proportion.
    """
    source_unit = _unit_of_tokens(source, source_tokens, sources)
    target_unit = _unit_of_tokens(hypothesis.text, hypothesis.tokens, targets)
    votes: list[Counter[int]] = [Counter() for _ in targets]
    for from_token, to_token in hypothesis.alignment():
        if from_token in source_unit and to_token in target_unit:
            votes[target_unit[to_token]][source_unit[from_token]] += 1
    known = [vote.most_common(1)[0][0] if vote else -1 for vote in votes]
    if max(known, default=-1) < 0:
        return [number * len(sources) // len(targets) for number in range(len(targets))]
    link = next(one for one in known if one >= 0)
    filled: list[int] = []
    for one, (start, end) in zip(known, targets, strict=True):
        if one >= 0:
            link = one
        elif filled and link + 1 < len(sources):
            # Punctuation that shares its token with a word.
            begin, stop = sources[link + 1]
            link += source[begin:stop] == hypothesis.text[start:end]
        filled.append(link)
    return filled


def _unit_of_tokens(
    text: str, tokens: Sequence[str], units: Sequence[tuple[int, int]]
) -> Mapping[int, int]:
    """Finds the unit in which each token begins, if the text holds the token."""
    starts = [start for start, _ in units]
    return {
        number: max(0, bisect.bisect_right(starts, place) - 1)
        for number, place in _places_of(text, tokens)
        if units
    }


def _places_of(text: str, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    position = 0
    for number, token in enumerate(tokens):
        piece = token.replace(_SPACE, " ").strip()
        # Not far away: a token that was normalized is not found, others after it are.
        place = text.find(piece, position, position + len(piece) + 32)
        if piece and place >= 0:
            yield number, place
            position = place + len(piece)
