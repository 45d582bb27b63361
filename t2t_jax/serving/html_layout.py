"""Puts translations into the markup of HTML; inline elements follow their words.

Libraries that parse HTML write it anew, with corrections; Python's own took 266 s for
100,000 characters of unfinished tags (3.11.7). This finds where text is, in one pass,
and leaves all else as it came.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from t2t_jax.decoding.text.sentences import Sentence, lay_out

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Hypothesis, Translation

# Elements that are part of a sentence; all others begin and end one.
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite data del dfn em font i img ins label mark q rp "
    "rt ruby s small span strike strong sub sup tt u wbr".split()
)
_VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()
)
# What a browser reads as characters until the end tag.
_RAW = frozenset("iframe noembed noframes script style textarea title xmp".split())
_UNTRANSLATED = frozenset(
    "address applet audio canvas code embed iframe kbd math noembed noframes object "
    "samp script style svg template textarea time var video xmp".split()
)
# Whose end tag may be left out where the next one begins or what it is in ends.
_OPEN_ENDED = frozenset("dd dt li optgroup option p td th tr".split())
# Possessive, so that no text takes longer than a pass over it. What does not end is,
# with all that follows it, one piece of markup.
_MARKUP = re.compile(
    r"""<!(?=--)(?:.*?-->|.*+)
    |(?:<[!?]|</(?=[^a-zA-Z]))[^>]*+>?+
    |<(?P<end>/?+)(?P<name>[a-zA-Z][^\s/>]*+)
    (?:=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+)|[^>=]++)*+>?+""",
    re.VERBOSE | re.DOTALL,
)
_NOT_TRANSLATED = re.compile(
    r"""\stranslate\s*+=\s*+["']?+no["'\s/>]
    |\sclass\s*+=\s*+(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate[\s/>])""",
    re.VERBOSE | re.IGNORECASE,
)
# Python refuses to read thousands of digits (`sys.set_int_max_str_digits`).
_LONG_NUMBER = re.compile(r"(?<=&#)[0-9]{9,}+")
_WHITE_SPACE = str.maketrans("\t\n\r\f", "    ")
_UNITS = re.compile(r"\w+|[^\w\s]")
_SPACE = "\u2581"
# Deeper or longer elements are kept, but not moved with the words.
_MAX_DEPTH = 16
_MAX_TAG = 2_000

Kind: TypeAlias = Literal["text", "open", "close", "other"]
Span: TypeAlias = tuple[int, int]
Spans: TypeAlias = Sequence[Span]
Elements: TypeAlias = tuple[int, ...]
"""The inline elements around a character, by number, the outermost first."""


class Piece(NamedTuple):
    """A part of a document: text, a tag, or one without an end and the like (`other`).

    Attributes:
      raw: as it stands in the document.
      name: of a tag, in small letters.
    """

    kind: Kind
    raw: str
    name: str = ""


def pieces_of(document: str) -> Iterator[Piece]:
    """Divides a document; the pieces joined are the document.

    Example:
      >>> [piece.raw for piece in pieces_of("1 < 2 <b class='>'>x</b>.")]
      ['1 < 2 ', "<b class='>'>", 'x', '</b>', '.']
    """
    position = 0
    while match := _MARKUP.search(document, position):
        yield Piece("text", document[position : match.start()])
        piece, position = _piece(match), match.end()
        yield piece
        if piece.kind == "open" and piece.name in _RAW:
            end = re.compile(rf"</{piece.name}[\s/>]", re.I).search(document, position)
            stop = end.start() if end else len(document)
            kind: Kind = "text" if piece.name == "title" else "other"
            yield Piece(kind, document[position:stop])
            position = stop
    yield Piece("text", document[position:])


def _piece(match: re.Match[str]) -> Piece:
    raw, name = match[0], (match["name"] or "").lower()
    if not name or not raw.endswith(">"):
        return Piece("other", raw)
    # Browsers ignore the slash where what follows are characters, and where it is the
    # end of a value.
    is_closed = raw.endswith("/>") and not _ends_in_value(raw)
    is_void = name in _VOID or (is_closed and name not in _RAW)
    return Piece("close" if match["end"] else "other" if is_void else "open", raw, name)


def _ends_in_value(tag: str) -> bool:
    """Returns whether the last value is without quotes, as in `<a href=http://e.org/>`."""
    _, sign, value = tag.rpartition("=")
    return bool(sign) and not re.search(r"""["'\s]""", value.lstrip())


def _is_untranslated(piece: Piece) -> bool:
    return piece.name in _UNTRANSLATED or bool(_NOT_TRANSLATED.search(piece.raw))


def _is_inline(piece: Piece) -> bool:
    if piece.name in _INLINE:
        return piece.kind == "close" or not _is_untranslated(piece)
    return piece.kind == "text" or piece.raw.startswith("<!--")


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
        self._split = split
        # The text without entities; white space in sentences as blanks.
        self._characters: list[str] = []
        self._around: list[Elements] = []  # of each character
        self._pairs: list[tuple[str, str]] = []  # start and end tag of each element
        # Markup that is around no character: its position, and what is around it.
        self._marks: list[tuple[int, str, Elements]] = []
        self._spans: list[Span] = []  # of the sentences
        self.sentences: tuple[Sentence, ...] = ()
        self._divide(document)
        self._places = {place for place, _, _ in self._marks}
        self.marked = frozenset(
            number
            for number, (start, end) in enumerate(self._spans)
            if end - start <= max_aligned and self._has_marks(start, end)
        )

    def _divide(self, document: str) -> None:
        """Divides a document into runs of text, and markup that ends sentences."""
        run: list[Piece] = []  # of text and inline markup
        skipped, depth, pre = "", 0, 0  # the element that is skipped; open ones inside
        inside = Counter[str]()  # the same by name, itself included
        for piece in (*pieces_of(document), Piece("other", "")):
            change = {"open": 1, "close": -1}.get(piece.kind, 0)
            if not skipped and _is_inline(piece):
                run.append(piece)
                continue
            self._add_run(run, is_pre=pre > 0)
            run = []
            self._marks.append((len(self._around), piece.raw, ()))
            self._characters.append("")  # a place of its own, between sentences
            self._around.append(())
            may_end = skipped in _OPEN_ENDED
            is_next = may_end and piece.name == skipped and change == depth == 1
            if skipped and not is_next:
                depth += change
                inside[piece.name] += change
                if not inside[skipped] or (may_end and inside[piece.name] < 0):
                    skipped = ""
            elif piece.kind == "open" and _is_untranslated(piece):
                skipped, depth, inside = piece.name, 1, Counter([piece.name])
            else:
                skipped = ""
                pre = max(0, pre + change * (piece.name == "pre"))

    def _add_run(self, run: Sequence[Piece], *, is_pre: bool) -> None:
        """Adds text and inline markup; of markup and white space alone, as it is."""
        end = len(self._around)
        if not any(one.kind == "text" and one.raw.strip() for one in run):
            self._marks += [(end, one.raw, ()) for one in run]
            return
        tags: list[tuple[str, int]] = []
        for piece in run:
            if piece.kind == "text":
                # Of nine digits and more, which are no character anyway.
                raw = _LONG_NUMBER.sub(lambda n: n[0].lstrip("0")[:8] or "0", piece.raw)
                self._characters += html.unescape(raw)
                self._around += [()] * (len(self._characters) - len(self._around))
            else:
                self._add_markup(piece, tags)
        text = "".join(self._characters[end:])
        text = text if is_pre else text.translate(_WHITE_SPACE)
        sentences = lay_out(text, split=self._split).sentences
        for one in sentences:
            begin = end + len(one.gap)
            end = begin + len(one.text)
            self._characters[begin:end] = one.text
            self._spans.append((begin, end))
        self.sentences += sentences

    def _add_markup(self, piece: Piece, tags: list[tuple[str, int]]) -> None:
        """Adds inline markup: an element around what came since its start, or a mark.

        A tag that closes another element than the last opened one is a mark.

        Args:
          tags: of open elements: their names, and where they are in `_marks`.
        """
        position = len(self._around)
        if piece.kind == "close" and tags and tags[-1][0] == piece.name:
            _, index = tags.pop()
            start, raw, _ = self._marks[index]
            if start < position and len(raw) <= _MAX_TAG and len(tags) < _MAX_DEPTH:
                new, rest = (len(self._pairs),), self._marks[index + 1 :]
                self._pairs.append((raw, piece.raw))
                self._around[start:] = [new + old for old in self._around[start:]]
                self._marks[index:] = [(n, raw, new + old) for n, raw, old in rest]
                return
        elif piece.kind == "open":
            tags.append((piece.name, len(self._marks)))
        self._marks.append((position, piece.raw, ()))

    def _has_marks(self, start: int, end: int) -> bool:
        """Returns whether there is markup inside a span, not only at its ends."""
        has_element = len({*self._around[start:end]}) > 1
        return has_element or any(n in self._places for n in range(start + 1, end))

    def fill(self, translations: Sequence[Translation], *, rank: int = 0) -> str:
        """Replaces the sentences by their translations.

        Args:
          rank: of the hypotheses that are taken; of those that have fewer, the last.
        """
        writer, position = _Writer(self), 0
        for (start, end), found in zip(self._spans, translations, strict=True):
            writer.write_characters(position, start)
            hypothesis = found.hypotheses[min(rank, len(found.hypotheses) - 1)]
            if self._has_marks(start, end):
                writer.write_marked((start, end), hypothesis, found.source_tokens)
            else:
                writer.write_marks(start, start + 1)
                writer.write_text(hypothesis.text, self._around[start])
            position = end
        writer.write_characters(position, len(self._around))
        return "".join(writer.written)


class _Writer:
    """Writes text, and opens and closes elements around it.

    Attributes:
      used: elements that text was written in.
      space: white space before what is written next, in the elements that both its
        neighbours are in.
    """

    def __init__(self, layout: HtmlLayout):
        self._pairs, self.used = layout._pairs, set[int]()
        self._characters, self._around = layout._characters, layout._around
        self._open: Elements = ()
        self._marks: dict[int, list[tuple[str, Elements]]] = defaultdict(list)
        for place, raw, elements in layout._marks:
            self._marks[place].append((raw, elements))
        self.written: list[str] = []
        self.space = ""

    def write_text(self, text: str, elements: Elements) -> None:
        """Writes text that is inside these elements."""
        self.used.update(elements)
        self._write(html.escape(text, quote=False), elements)

    def write_marks(self, start: int, end: int) -> bool:
        """Writes the markup at these positions, once; returns whether there was any."""
        marks = [one for n in range(start, end) for one in self._marks.pop(n, ())]
        for raw, elements in marks:
            self._write(raw, elements)
        return bool(marks)

    def write_characters(self, start: int, end: int) -> None:
        """Writes what stands at these positions, markup included."""
        for place in range(start, end):
            self.write_marks(place, place + 1)
            self.write_text(self._characters[place], self._around[place])

    def write_marked(self, span: Span, best: Hypothesis, tokens: Sequence[str]) -> None:
        """Writes each unit of a translation in the elements of its source unit.

        Args:
          tokens: of the source.
        """
        source, target = "".join(self._characters[slice(*span)]), best.text
        sources, targets = _units_of(source), _units_of(target)
        links = _links(source, sources, tokens, targets, best)
        written, place = 0, span[0]  # of the target, and of the markup
        for (start, end), link in zip(targets, links, strict=True):
            begin, stop = (span[0] + at for at in sources[link])
            before = span[0] + (sources[link - 1][1] if link else 0)
            self.write_marks(place, before + 1)  # in their order
            place = max(place, before + 1)
            self.space += target[written:start]
            if self.write_marks(before + 1, begin):
                self.space += " "  # white space on both sides
            self.write_marks(begin, stop)
            if target[start:end] == source[slice(*sources[link])]:
                self.write_characters(begin, stop)
            else:
                around = Counter(self._around[begin:stop]).most_common(1)[0][0]
                self.write_text(target[start:end], around)
            written = end
        self.space += target[written:]
        self.write_marks(*span)
        # Elements that end here and that no word is in.
        inside = chain.from_iterable(self._around[slice(*span)])
        unused = {*inside} - {*self._around[span[1]]} - self.used
        self.written += chain(*(self._pairs[number] for number in sorted(unused)))

    def _write(self, raw: str, elements: Elements) -> None:
        """Closes and opens elements until these are open, and writes markup."""
        shared = 0
        while self._open[shared : shared + 1] == elements[shared : shared + 1] != ():
            shared += 1
        self.written += [self._pairs[n][1] for n in reversed(self._open[shared:])]
        self.written.append(html.escape(self.space, quote=False))
        self.written += [self._pairs[n][0] for n in elements[shared:]]
        self.written.append(raw)
        self._open, self.space = elements, ""


def _units_of(text: str) -> Spans:
    """Lists the spans of words and punctuation."""
    return [match.span() for match in _UNITS.finditer(text)]


def _links(
    source: str, sources: Spans, tokens: Sequence[str], targets: Spans, best: Hypothesis
) -> list[int]:
    """Returns the number of the source unit of each target unit.

    It is that with which most tokens of the unit are aligned. A unit without one has
    that of the unit before; without any alignment they are linked in proportion.
    """
    target = best.text
    source_unit = _unit_of_tokens(source, tokens, sources)
    target_unit = _unit_of_tokens(target, best.tokens, targets)
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for from_token, to_token in best.alignment():
        if from_token in source_unit and to_token in target_unit:
            votes[target_unit[to_token]][source_unit[from_token]] += 1
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


def _unit_of_tokens(text: str, tokens: Sequence[str], units: Spans) -> dict[int, int]:
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
