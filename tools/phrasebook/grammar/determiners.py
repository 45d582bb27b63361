"""The determiners of the phrasebook, and the nouns they combine with.

Repeated determiners of a set are more frequent: "the" and "a" are the most common.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeAlias

from grammar import english, german
from grammar.german import GermanDeterminer


class Determiner(NamedTuple):
    """A determiner and the number it calls for. English "a" becomes "an" by itself.

    Attributes:
      denial: how German denies a phrase with it: "nicht" (of what is known), "kein"
        (of what is not), or "" if the phrase is never denied.
      asserted: whether it may stand in a statement; "any" may not.
      is_new: whether it may stand behind "there is".
    """

    english: str
    german: GermanDeterminer
    plural: bool = False
    denial: str = ""
    asserted: bool = True
    is_new: bool = True


MOODS = ("told", "asked", "denied", "no", "known", "new", "new_asked")
"""What a frame asks of a determiner.

"denied" is what nicht or kein can deny, "no" what kein can, "known" what nicht can,
"new" what there may be; "any" is for "asked", "denied" and "new_asked" only.
"""

ByMood: TypeAlias = tuple[tuple[Determiner, ...], ...]
"""Determiners, those of each of `MOODS`."""


def _fits(determiner: Determiner, mood: str) -> bool:
    if mood == "asked":
        return True
    if mood == "denied":
        return determiner.denial != ""
    if mood == "no":
        return determiner.denial == "kein" and determiner.asserted
    if mood == "known":
        return determiner.denial == "nicht"
    if mood.startswith("new"):
        is_allowed = determiner.asserted or mood == "new_asked"
        return is_allowed and determiner.is_new
    return determiner.asserted


@cache
def by_mood(allowed: tuple[Determiner, ...]) -> ByMood:
    """Sorts determiners by the moods that they fit."""
    return tuple(tuple(d for d in allowed if _fits(d, mood)) for mood in MOODS)


@cache
def of_number(determiners: ByMood, *, plural: bool) -> ByMood:
    """Keeps the determiners of a number."""
    return tuple(
        tuple(d for d in of_mood if d.plural == plural) for of_mood in determiners
    )


def _known(
    word: str, german: str, kind: str, *, possessor: str = "", plural: bool = False
) -> Determiner:
    return Determiner(
        word, GermanDeterminer(german, kind, possessor), plural, "nicht", is_new=False
    )


def _unknown(
    word: str, german: str, *, asserted: bool = True, plural: bool = False
) -> Determiner:
    kind = "ein-word" if german else "bare"
    return Determiner(word, GermanDeterminer(german, kind), plural, "kein", asserted)


def _counted(word: str, german: str, kind: str = "bare") -> Determiner:
    return Determiner(word, GermanDeterminer(german, kind), plural=True)


THE = _known("the", "", "definite")
A = _unknown("a", "ein")
NONE = _unknown("", "")
NONE_PLURAL = _unknown("", "", plural=True)
_ANY = _unknown("any", "", asserted=False)
_ANY_PLURAL = _unknown("any", "", asserted=False, plural=True)
_THIS = _known("this", "dies", "der-word")
_EVERY = Determiner("every", GermanDeterminer("jed", "der-word"), is_new=False)
_SOME = Determiner("some", GermanDeterminer("etwas", "bare"))
_MUCH = Determiner("a lot of", GermanDeterminer("viel", "bare"))
_THE_PLURAL = _known("the", "", "definite", plural=True)
_THESE = _known("these", "dies", "der-word", plural=True)
_ALL = _counted("all", "all", "der-word")._replace(is_new=False)
_MANY = _counted("many", "viel", "inflected")
_SOME_PLURAL = _counted("some", "einig", "inflected")
_NUMBERS = tuple(_counted(english.number(n), german.number(n)) for n in range(2, 13))

HOW_MUCH = (Determiner("how much", GermanDeterminer("wie viel", "bare")),)
WHICH = (Determiner("which", GermanDeterminer("welch", "der-word")),)
WHICH_OR_HOW_MANY = (
    *WHICH,
    _counted("how many", "wie viel", "inflected"),
    _counted("how many", "wie viel", "inflected"),
    _counted("which", "welch", "der-word"),
)

_POSSESSIVES = (
    ("my", "mein"), ("your", "dein"), ("his", "sein"), ("her", "ihr"), ("our", "unser"),
    ("their", "ihr"),
)  # fmt: skip
_OWN = tuple(_known(word, wort, "ein-word") for word, wort in _POSSESSIVES)
_OWN_PLURAL = tuple(
    _known(word, wort, "ein-word", plural=True) for word, wort in _POSSESSIVES
)
_RELATIVES = tuple(
    _known(f"my {whose}'s", "", "definite", possessor=wessen)
    for whose, wessen in (
        ("uncle", "meines Onkels"), ("aunt", "meiner Tante"),
        ("mother", "meiner Mutter"), ("father", "meines Vaters"),
        ("brother", "meines Bruders"), ("sister", "meiner Schwester"),
    )
)  # fmt: skip
_NAMED = tuple(
    Determiner(
        f"{name}'s", GermanDeterminer(f"{name}s", "bare"), False, "nicht", is_new=False
    )
    for name in ("Peter", "Anna", "Maria", "Paul")
)

_PLURALS = (
    *5 * (_THE_PLURAL,), *3 * (NONE_PLURAL,), _THESE, _ALL, _MANY, _SOME_PLURAL,
    *_NUMBERS[:4],
)  # fmt: skip
OF_PEOPLE = (
    *16 * (THE,), *9 * (A,), *2 * (_THIS,), _EVERY, *_OWN, *_OWN_PLURAL[:3],
    *_PLURALS, _NUMBERS[8], _ANY_PLURAL,
)  # fmt: skip
OF_FAMILY = (
    *6 * _OWN, *_OWN_PLURAL, *3 * (THE,), *5 * (A,), _NAMED[0], _NAMED[1], _NUMBERS[0],
    _NUMBERS[1], _THE_PLURAL,
)  # fmt: skip
OF_PARENTS = (*3 * _OWN_PLURAL, _THE_PLURAL)
OF_CROWDS = (*_PLURALS, *_PLURALS, *_NUMBERS)
OF_PLACES = (
    *20 * (THE,), *10 * (A,), *3 * (_THIS,), *_OWN, *_PLURALS[::2],
)  # fmt: skip
OF_MASSES = (
    *14 * (NONE,), *8 * (THE,), *_OWN, _THIS, *3 * (_SOME,), _MUCH, _NAMED[0],
    *3 * (_ANY,),
)  # fmt: skip
OF_SERVINGS = (*7 * (A,), *2 * (THE,), _THIS, *_OWN[:4])
OF_NEEDS = (*8 * (NONE,), *2 * (_SOME,), _MUCH, *2 * (_ANY,))
OF_THINGS = (
    *18 * (THE,), *14 * (A,), *2 * (_THIS,), *2 * _OWN, *_RELATIVES, *_NAMED,
    *2 * _PLURALS, *_OWN_PLURAL, *_OWN_PLURAL[:3], *_NUMBERS[3:], *2 * (_ANY_PLURAL,),
)  # fmt: skip
