"""Divides HTML into text that is translated and markup that is kept to the letter.

Libraries that parse HTML write it anew, with corrections; Python's own took 266 s for
100,000 characters of unfinished tags (3.11.7). This finds where text is, in one pass,
and leaves all else as it came.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["text", "open", "close", "void", "other"]

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
# Deeper inline elements are kept, but not moved with the words.
_MAX_DEPTH = 16

# Possessive, so that no text takes longer than a pass over it.
_TAG = re.compile(
    r"""</?+(?P<name>[a-zA-Z][^\s/>]*+)
    (?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+)|[^>=])*+>""",
    re.VERBOSE,
)
_NOT_TRANSLATED = re.compile(
    r"""\stranslate\s*+=\s*+["']?+no["'\s/>]
    |\sclass\s*+=\s*+(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate[\s/>])""",
    re.VERBOSE | re.IGNORECASE,
)
_WHITE_SPACE = str.maketrans("\t\n\r\f", "    ")


class Piece(NamedTuple):
    """A part of a document: text, a tag, or a comment and the like (`other`).

    Attributes:
      raw: as it stands in the document.
      name: of a tag, in small letters.
    """

    kind: Kind
    raw: str
    name: str = ""


class Mark(NamedTuple):
    """Inline markup at a position of a text.

    Attributes:
      depth: of elements that are open before it; -1 for markup without a partner.
    """

    position: int
    raw: str
    kind: Kind
    depth: int


@dataclasses.dataclass(frozen=True)
class Segment:
    """Text between markup that ends sentences, without entities.

    Attributes:
      text: its white space as blanks, unless it is preformatted.
      original: of the same length, with the white space of the document.
      marks: the inline markup, by position.
    """

    text: str
    original: str
    marks: tuple[Mark, ...]


def pieces_of(document: str) -> Iterator[Piece]:
    """Divides a document; the pieces joined are the document.

    An unfinished tag or comment is, with all that follows it, one piece of markup.

    Example:
      >>> [piece.raw for piece in pieces_of("1 < 2 <b class='>'>x</b>")]
      ['1 < 2 ', "<b class='>'>", 'x', '</b>']
    """
    position = start = 0
    while (position := document.find("<", position)) >= 0:
        found = _markup_at(document, position)
        if found is None:
            position += 1  # "<" as text
            continue
        if start < position:
            yield Piece("text", document[start:position])
        yield found
        start = position = position + len(found.raw)
        if found.kind == "open" and found.name in _RAW:
            end = _end_of_raw(document, position, found.name)
            if position < end:
                kind: Kind = "text" if found.name == "title" else "other"
                yield Piece(kind, document[position:end])
            start = position = end
    if start < len(document):
        yield Piece("text", document[start:])


def _markup_at(document: str, start: int) -> Piece | None:
    """Reads the markup that begins with this "<", if it is markup."""
    following = document[start + 1 : start + 3]
    if document.startswith("<!--", start):
        return _until(document, start, "-->", 2)
    if following[:1] in ("!", "?"):
        return _until(document, start, ">", 2)
    letter = following.lstrip("/")[:1]
    if following[:1] == "/" and not (letter.isascii() and letter.isalpha()):
        return _until(document, start, ">", 2) if len(following) > 1 else None
    if not (letter.isascii() and letter.isalpha()):
        return None
    match = _TAG.match(document, start)
    if match is None:
        return Piece("other", document[start:])
    name = match["name"].lower()
    if following[0] == "/":
        return Piece("close", match[0], name)
    # Browsers ignore the slash where what follows are characters.
    is_void = name in _VOID or (match[0].endswith("/>") and name not in _RAW)
    return Piece("void" if is_void else "open", match[0], name)


def _until(document: str, start: int, end: str, offset: int) -> Piece:
    stop = document.find(end, start + offset)
    return Piece("other", document[start : stop + len(end) if stop >= 0 else None])


def _end_of_raw(document: str, start: int, name: str) -> int:
    match = re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(document, start)
    return match.start() if match else len(document)


class _Reader:
    """Collects pieces into segments."""

    def __init__(self) -> None:
        self.parts: list[str | Segment] = []
        self._text: list[Piece] = []
        self._untranslated = ""  # the element that is skipped
        self._depth = 0  # of elements of its name in it
        self._pre = 0

    def add(self, piece: Piece) -> None:
        if self._untranslated:
            self._skip(piece)
        elif piece.kind == "text" or _is_inline(piece):
            self._text.append(piece)
        else:
            self.flush()
            self.parts.append(piece.raw)
            if piece.name == "pre":
                self._pre = max(0, self._pre + (1 if piece.kind == "open" else -1))
            if piece.kind == "open" and _is_untranslated(piece):
                self._untranslated, self._depth = piece.name, 1

    def _skip(self, piece: Piece) -> None:
        self.parts.append(piece.raw)
        if piece.name == self._untranslated:
            self._depth += {"open": 1, "close": -1}.get(piece.kind, 0)
            if not self._depth:
                self._untranslated = ""

    def flush(self) -> None:
        """Ends a segment."""
        if any(piece.kind == "text" and piece.raw.strip() for piece in self._text):
            self.parts.append(_segment(self._text, is_pre=bool(self._pre)))
        else:
            self.parts += [piece.raw for piece in self._text]
        self._text = []


def _is_untranslated(piece: Piece) -> bool:
    return piece.name in _UNTRANSLATED or bool(_NOT_TRANSLATED.search(piece.raw))


def _is_inline(piece: Piece) -> bool:
    is_tag = piece.kind in ("open", "close", "void")
    if is_tag and piece.name in _INLINE:
        return piece.kind == "close" or not _is_untranslated(piece)
    return piece.kind == "other" and piece.raw.startswith("<!--")


def _segment(pieces: list[Piece], *, is_pre: bool) -> Segment:
    text, position = [], 0
    found: list[tuple[int, Piece]] = []
    for piece in pieces:
        if piece.kind == "text":
            text.append(html.unescape(piece.raw))
            position += len(text[-1])
        else:
            found.append((position, piece))
    original = "".join(text)
    shown = original if is_pre else original.translate(_WHITE_SPACE)
    return Segment(shown, original, tuple(_paired(found)))


def _paired(found: list[tuple[int, Piece]]) -> Iterator[Mark]:
    """Yields marks, where elements are open between their two tags."""
    depths = [-1] * len(found)
    is_open: list[int] = []
    for number, (_, piece) in enumerate(found):
        if piece.kind == "open":
            is_open.append(number)
        elif piece.kind == "close" and is_open:
            # A tag that closes another element than the last has no partner.
            if found[is_open[-1]][1].name == piece.name:
                depths[is_open.pop()] = depths[number] = len(is_open)
    depths = _without_unpaired(found, depths)
    for (position, piece), depth in zip(found, depths, strict=True):
        yield Mark(position, piece.raw, piece.kind, depth)


def _without_unpaired(found: list[tuple[int, Piece]], depths: list[int]) -> list[int]:
    """Counts the depth of pairs by pairs alone; -1 for those that are too deep."""
    counted, depth = [], 0
    for (_, piece), known in zip(found, depths, strict=True):
        if known < 0:
            counted.append(-1)
            continue
        depth -= piece.kind == "close"
        counted.append(depth if depth < _MAX_DEPTH else -1)
        depth += piece.kind == "open"
    return counted


def read_html(document: str) -> list[str | Segment]:
    """Divides a document into markup, which is kept, and segments to translate.

    Example:
      >>> [type(part).__name__ for part in read_html("<p>A <b>dog</b>.</p><hr>")]
      ['str', 'Segment', 'str', 'str']
    """
    reader = _Reader()
    for piece in pieces_of(document):
        reader.add(piece)
    reader.flush()
    return reader.parts
