"""German declension for the phrasebook: determiners, adjectives, nouns and numbers.

The heart is one principle: each noun phrase shows its gender, number and case once,
by a strong ending. If the determiner carries it, the adjective is weak (`der alte
Mann`); if the determiner is bare, the adjective is strong (`ein alter Mann`,
`zwei alte Männer`, `frisches Brot`). The "mixed" declension of school grammars is
what follows for `ein`, which is bare in three places only.

Numbers have the unit before the ten (`fünfundvierzig`, five-and-forty), and the half
hour is counted towards the next one (`halb acht` is half past seven).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

# Rows: gender, or "p" for the plural of all three. Columns: the cases.
DEFINITE = {
    "m": ("der", "den", "dem"),
    "f": ("die", "die", "der"),
    "n": ("das", "das", "dem"),
    "p": ("die", "die", "den"),
}
_STRONG = {
    "m": ("er", "en", "em"),
    "f": ("e", "e", "er"),
    "n": ("es", "es", "em"),
    "p": ("e", "e", "en"),
}
_WEAK = {
    "m": ("e", "en", "en"),
    "f": ("e", "e", "en"),
    "n": ("e", "e", "en"),
    "p": ("en", "en", "en"),
}
_CONTRACTIONS = {"in dem": "im", "an dem": "am", "von dem": "vom"}
_CONTRACTIONS |= {"zu dem": "zum", "zu der": "zur", "in das": "ins"}

_UNITS = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
).split()
_TENS = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_ORDINALS = {1: "ersten", 3: "dritten", 7: "siebten", 8: "achten"}


class Case(IntEnum):
    """Cases, as columns of the tables."""

    NOM = 0
    ACC = 1
    DAT = 2


class GermanNoun(NamedTuple):
    """A German noun.

    Attributes:
      weak: whether the singular takes the plural's -n outside the nominative.
    """

    singular: str
    plural: str
    gender: str
    weak: bool


class GermanDeterminer(NamedTuple):
    """A German determiner.

    Attributes:
      stem: what endings are added to; all of it where there are none ("zwei", "").
      kind: "definite" (der), "der-word" (dies-), "ein-word" (mein-), "inflected"
        (viel-: declined itself, and yet its adjective is strong) or "bare".
      possessor: a genitive behind the noun: "meines Onkels", or "".
    """

    stem: str
    kind: str
    possessor: str = ""


def decline(
    noun: GermanNoun, case: Case, determiner: GermanDeterminer, *,
    adjective: str = "", plural: bool = False,
) -> str:  # fmt: skip
    """Declines a whole noun phrase.

    Args:
      adjective: a stem ("alt", "teur"), several ("groß rot"), or "" for none.

    Example:
      >>> arzt, ein = GermanNoun("Arzt", "Ärzte", "m", False), "ein-word"
      >>> decline(arzt, Case.NOM, GermanDeterminer("ein", ein), adjective="alt")
      'ein alter Arzt'
    """
    row = "p" if plural else noun.gender
    bare = determiner.kind == "bare" or (
        determiner.kind == "ein-word"
        and (row, case) in (("m", Case.NOM), ("n", Case.NOM), ("n", Case.ACC))
    )
    if determiner.kind == "definite":
        first = DEFINITE[row][case]
    else:
        first = determiner.stem if bare else determiner.stem + _STRONG[row][case]
    is_strong = bare or determiner.kind == "inflected"
    ending = (_STRONG if is_strong else _WEAK)[row][case]
    middle = (stem + ending for stem in adjective.split())
    words = (first, *middle, _noun_form(noun, case, plural), determiner.possessor)
    return " ".join(word for word in words if word)


def _noun_form(noun: GermanNoun, case: Case, plural: bool) -> str:
    if plural:
        needs_n = case == Case.DAT and not noun.plural.endswith(("n", "s"))
        return noun.plural + "n" * needs_n
    return noun.plural if noun.weak and case != Case.NOM else noun.singular


def with_preposition(preposition: str, phrase: str) -> str:
    """Puts a preposition before a phrase, contracted with its article where usual.

    Example:
      >>> with_preposition("zu", "dem Bahnhof"), with_preposition("zu", "einem Zug")
      ('zum Bahnhof', 'zu einem Zug')
    """
    first, space, rest = phrase.partition(" ")
    both = f"{preposition} {first}"
    return _CONTRACTIONS.get(both, both) + space + rest


def number(n: int) -> str:
    """Spells 0 to 99.

    Example:
      >>> number(7), number(45), number(21)
      ('sieben', 'fünfundvierzig', 'einundzwanzig')
    """
    if n < len(_UNITS):
        return _UNITS[n]
    tens, unit = divmod(n, 10)
    head = _UNITS[unit].removesuffix("s" * (unit == 1)) + "und" if unit else ""
    return head + _TENS[tens]


def ordinal(n: int) -> str:
    """Spells the ordinal of 1 to 99 as it stands behind `am`.

    Example:
      >>> ordinal(3), ordinal(19), ordinal(31)
      ('dritten', 'neunzehnten', 'einunddreißigsten')
    """
    return _ORDINALS.get(n) or number(n) + ("ten" if n < len(_UNITS) else "sten")


def clock(hour: int, quarters: int) -> str:
    """Spells the time `quarters` quarters of an hour after `hour` (1 to 12).

    Example:
      >>> clock(1, 0), clock(7, 1), clock(7, 2), clock(12, 3)
      ('ein Uhr', 'Viertel nach sieben', 'halb acht', 'Viertel vor eins')
    """
    following = number(hour % 12 + 1)
    if quarters == 0:
        return "ein Uhr" if hour == 1 else f"{number(hour)} Uhr"
    if quarters == 1:
        return f"Viertel nach {number(hour)}"
    return f"halb {following}" if quarters == 2 else f"Viertel vor {following}"
