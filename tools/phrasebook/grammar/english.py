"""English morphology for the phrasebook: plurals, verb groups, numbers, clock times.

Only the rules that the lexicon needs, and each as a rule: a word that breaks one
brings its own form along. Persons are "1s" to "3p", shared with the German side.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth"}
_ORDINALS |= {"eight": "eighth", "nine": "ninth", "twelve": "twelfth"}
_SHORT_VOWEL = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
_BE = {"1s": "am", "3s": "is"}
_WAS = {"1s": "was", "3s": "was"}
_PHRASAL = {
    "want": ("want", "wants", "do", "does", "want"),
    "have to": ("have", "has", "do", "does", "have"),
    "wanted": ("wanted", "wanted", "did", "did", "want"),
    "had to": ("had", "had", "did", "did", "have"),
    "would like": ("would like", "would like", "would", "would", "like"),
}
"""Of "to": finite for others and for 3s, auxiliary for both, what follows it."""


class EnglishVerb(NamedTuple):
    """An English verb.

    Attributes:
      particle: what stands before the complement: "for", or "".
    """

    base: str
    particle: str
    past: str
    third: str


class VerbGroup(NamedTuple):
    """A finite verb, split as English syntax asks for it.

    Attributes:
      statement: the whole of it: "wants to buy".
      auxiliary: precedes the subject of a question: "does".
      rest: follows it: "want to buy".
    """

    statement: str
    auxiliary: str
    rest: str


def english_verb(words: str, past: str = "", third: str = "") -> EnglishVerb:
    """Makes a verb of "base" or "base particle"; `past`, `third` if irregular.

    Example:
      >>> english_verb("try on")
      EnglishVerb(base='try', particle='on', past='tried', third='tries')
    """
    base, _, particle = words.partition(" ")
    return EnglishVerb(
        base, particle, past or _regular_past(base), third or with_s(base)
    )


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return _doubled(base) + "ed"


def _doubled(base: str) -> str:
    return base + base[-1] if _SHORT_VOWEL.fullmatch(base) else base


def with_s(word: str) -> str:
    """Adds the -s of plurals and of the third person.

    Example:
      >>> [with_s(word) for word in ("box", "try", "day", "church")]
      ['boxes', 'tries', 'days', 'churches']
    """
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def progressive(base: str) -> str:
    """Makes the -ing form.

    Example:
      >>> [progressive(base) for base in ("write", "lie", "get", "wait")]
      ['writing', 'lying', 'getting', 'waiting']
    """
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return _doubled(base) + "ing"


def verb_group(verb: EnglishVerb, tense: str, person: str) -> VerbGroup:
    """Conjugates a verb.

    Args:
      verb: the verb; "be" is its own auxiliary, and so is the "would" of "would like".
      tense: "progressive", "simple", "past", "want", "have to", "would like", "wanted",
        "had to", or a modal that takes the bare infinitive ("will", "can", …).

    Example:
      >>> verb_group(english_verb("wait for"), "past", "3s")
      VerbGroup(statement='waited', auxiliary='did', rest='wait')
    """
    base = verb.base
    if base == "would like":
        return VerbGroup(base, "would", "like")
    if base == "be" and tense in ("simple", "past"):
        be = _be(tense, person)
        return VerbGroup(be, be, "")
    if tense == "progressive":
        be, participle = _be("simple", person), progressive(base)
        return VerbGroup(f"{be} {participle}", be, participle)
    if tense == "simple":
        if person == "3s":
            return VerbGroup(verb.third, "does", base)
        return VerbGroup(base, "do", base)
    if tense == "past":
        return VerbGroup(verb.past, "did", base)
    if tense in _PHRASAL:
        is_third = person == "3s"
        *forms, rest = _PHRASAL[tense]
        finite, auxiliary = forms[is_third], forms[2 + is_third]
        return VerbGroup(f"{finite} to {base}", auxiliary, f"{rest} to {base}")
    return VerbGroup(f"{tense} {base}", tense, base)


def _be(tense: str, person: str) -> str:
    if tense == "past":
        return _WAS.get(person, "were")
    return _BE.get(person, "are")


def with_article(words: str) -> str:
    """Puts "a" or "an" before words.

    Example:
      >>> with_article("old car"), with_article("car")
      ('an old car', 'a car')
    """
    return ("an " if words[0] in "aeiou" else "a ") + words


def number(n: int) -> str:
    """Spells 0 to 99.

    Example:
      >>> number(7), number(45)
      ('seven', 'forty-five')
    """
    if n < len(_UNITS):
        return _UNITS[n]
    tens, unit = divmod(n, 10)
    return f"{_TENS[tens]}-{_UNITS[unit]}" if unit else _TENS[tens]


def ordinal(n: int) -> str:
    """Spells the ordinal of 1 to 99.

    Example:
      >>> ordinal(3), ordinal(20), ordinal(31)
      ('third', 'twentieth', 'thirty-first')
    """
    head, hyphen, last = number(n).rpartition("-")
    if last.endswith("y"):
        return last[:-1] + "ieth"
    return head + hyphen + _ORDINALS.get(last, last + "th")


def clock(hour: int, quarters: int) -> str:
    """Spells the time `quarters` quarters of an hour after `hour` (1 to 12).

    Example:
      >>> clock(7, 0), clock(12, 3)
      ("seven o'clock", 'a quarter to one')
    """
    if quarters == 0:
        return f"{number(hour)} o'clock"
    if quarters == 3:
        return f"a quarter to {number(hour % 12 + 1)}"
    return f"{('a quarter', 'half')[quarters - 1]} past {number(hour)}"
