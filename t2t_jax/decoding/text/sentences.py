"""Divides texts into sentences, and puts translations into their places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from t2t_jax.decoding.text.split_long_lines import SENTENCE_ENDS

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Translation

_LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
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
        pairs = zip(self.sentences, translations, strict=True)
        return (
            "".join(
                one.gap + found.hypotheses[min(rank, len(found.hypotheses) - 1)].text
                for one, found in pairs
            )
            + self.end
        )


def lay_out(text: str, *, split: str) -> Layout:
    r"""Divides a text.

    Args:
      split: `sentences`, or `lines` for the lines as they are.

    Example:
      >>> layout = lay_out("It rains. Mr. Fox\nsleeps.", split="sentences")
      >>> [one.text for one in layout.sentences]
      ['It rains.', 'Mr. Fox', 'sleeps.']
    """
    spans = []
    for start, end in _lines(text):
        spans += (
            _sentences(text, start, end) if split == "sentences" else [(start, end)]
        )
    found, position = [], 0
    for start, end in spans:
        found.append(Sentence(text[position:start], text[start:end]))
        position = end
    return Layout(tuple(found), text[position:])


def _lines(text: str) -> list[tuple[int, int]]:
    """Lists the spans of lines that are not blank, without white space at the ends."""
    ends = [(match.start(), match.end()) for match in _LINE_ENDS.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    stops = [*(start for start, _ in ends), len(text)]
    spans = (_strip(text, *span) for span in zip(starts, stops, strict=True))
    return [(start, end) for start, end in spans if start < end]


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Lists the spans of the sentences of a line."""
    spans, begin = [], start
    for match in SENTENCE_ENDS.finditer(text, start, end):
        if match.end() < end and _is_end(text, begin, match):
            spans.append(_strip(text, begin, match.end()))
            begin = match.end()
    return [*spans, _strip(text, begin, end)]


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
