"""Divides HTML into text that is translated and markup that is kept to the letter.

Libraries that parse HTML write it anew, with corrections; Python's own took 266 s for
100,000 characters of unfinished tags (3.11.7). This finds where text is, in one pass,
and leaves all else as it came.
"""

from __future__ import annotations

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


class Piece(NamedTuple):
    """A part of a document: text, a tag, or a comment and the like (`other`).

    Attributes:
      raw: as it stands in the document.
      name: of a tag, in small letters.
    """

    kind: Kind
    raw: str
    name: str = ""


class Segment(NamedTuple):
    """Text between markup that ends sentences, without entities.

    Attributes:
      text: its white space as blanks, unless it is preformatted.
      original: of the same length, with the white space of the document.
      marks: the inline markup, and its positions in the text.
    """

    text: str
    original: str
    marks: list[tuple[int, Piece]]


def pieces_of(document: str) -> Iterator[Piece]:
    """Divides a document; the pieces joined are the document.

    Example:
      >>> [piece.raw for piece in pieces_of("1 < 2 <b class='>'>x</b>")]
      ['1 < 2 ', "<b class='>'>", 'x', '</b>']
    """
    position = 0
    while match := _MARKUP.search(document, position):
        if position < match.start():
            yield Piece("text", document[position : match.start()])
        piece = _piece(match)
        yield piece
        position = match.end()
        if piece.kind == "open" and piece.name in _RAW:
            end = re.compile(rf"</{piece.name}[\s/>]", re.I).search(document, position)
            stop = end.start() if end else len(document)
            if position < stop:
                kind: Kind = "text" if piece.name == "title" else "other"
                yield Piece(kind, document[position:stop])
            position = stop
    if position < len(document):
        yield Piece("text", document[position:])


def _piece(match: re.Match[str]) -> Piece:
    name = (match["name"] or "").lower()
    if not name or not match[0].endswith(">"):
        return Piece("other", match[0])
    if match["end"]:
        return Piece("close", match[0], name)
    # Browsers ignore the slash where what follows are characters.
    is_void = name in _VOID or (match[0].endswith("/>") and name not in _RAW)
    return Piece("void" if is_void else "open", match[0], name)


def read_html(document: str) -> list[str | Segment]:
    """Divides a document into markup, which is kept, and segments to translate.

    Example:
      >>> [type(part).__name__ for part in read_html("<p>A <b>dog</b>.</p><hr>")]
      ['str', 'Segment', 'str', 'str']
    """
    parts: list[str | Segment] = []
    run: list[Piece] = []  # of text and inline markup
    skipped, depth, pre = "", 0, 0  # the element that is skipped; open ones inside
    for piece in pieces_of(document):
        change = {"open": 1, "close": -1}.get(piece.kind, 0)
        if skipped:
            parts.append(piece.raw)
            depth += change if piece.name == skipped else 0
            skipped = skipped if depth else ""
        elif piece.kind == "text" or _is_inline(piece):
            run.append(piece)
        else:
            parts += [*_segment(run, is_pre=pre > 0), piece.raw]
            run = []
            pre = max(0, pre + change) if piece.name == "pre" else pre
            if piece.kind == "open" and _is_untranslated(piece):
                skipped, depth = piece.name, 1
    return [*parts, *_segment(run, is_pre=pre > 0)]


def _is_untranslated(piece: Piece) -> bool:
    return piece.name in _UNTRANSLATED or bool(_NOT_TRANSLATED.search(piece.raw))


def _is_inline(piece: Piece) -> bool:
    if piece.name in _INLINE:
        return piece.kind == "close" or not _is_untranslated(piece)
    return piece.raw.startswith("<!--")


def _segment(run: list[Piece], *, is_pre: bool) -> Iterator[str | Segment]:
    """Makes a segment of text and inline markup; of markup alone, its parts."""
    if not any(piece.kind == "text" and piece.raw.strip() for piece in run):
        yield from (piece.raw for piece in run)
        return
    original, marks = "", []
    for piece in run:
        if piece.kind == "text":
            original += _unescaped(piece.raw)
        else:
            marks.append((len(original), piece))
    shown = original if is_pre else original.translate(_WHITE_SPACE)
    yield Segment(shown, original, marks)


def _unescaped(text: str) -> str:
    """Replaces entities; numbers of nine digits and more are no character anyway."""
    return html.unescape(
        _LONG_NUMBER.sub(lambda found: found[0].lstrip("0")[:8] or "0", text)
    )
