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


class EnglishVerb(NamedTuple):
    """An English verb.

    Attributes:
      base: the infinitive: "wait".
      particle: what stands before the complement: "for", or "".
      past: the simple past: "waited".
    """

    base: str
    particle: str
    past: str


class VerbGroup(NamedTuple):
    """A finite verb in the two shapes that English syntax asks for.

    Attributes:
      statement: all of it together: "wants to buy".
      auxiliary: what a question puts before the subject: "does".
      rest: what it leaves behind the subject: "want to buy".
    """

    statement: str
    auxiliary: str
    rest: str


def english_verb(words: str, past: str = "") -> EnglishVerb:
    """Makes a verb of "base" or "base particle"; `past` if it is irregular.

    Example:
      >>> english_verb("try on")
      EnglishVerb(base='try', particle='on', past='tried')
    """
    base, _, particle = words.partition(" ")
    return EnglishVerb(base, particle, past or _regular_past(base))


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
    if base.endswith("e"):
        return base[:-1] + "ing"
    return _doubled(base) + "ing"


def verb_group(verb: EnglishVerb, tense: str, person: str) -> VerbGroup:
    """Conjugates a verb.

    Args:
      verb: the verb.
      tense: "progressive", "simple", "past", "want", or a modal ("will", "can", …).
      person: "1s" to "3p".

    Returns:
      The finite verb, whole and split for a question.

    Example:
      >>> verb_group(english_verb("wait for"), "past", "3s")
      VerbGroup(statement='waited', auxiliary='did', rest='wait')
    """
    base = verb.base
    do = "does" if person == "3s" else "do"
    if tense == "progressive":
        be, participle = _BE.get(person, "are"), progressive(base)
        return VerbGroup(f"{be} {participle}", be, participle)
    if tense == "simple":
        return VerbGroup(with_s(base) if person == "3s" else base, do, base)
    if tense == "past":
        return VerbGroup(verb.past, "did", base)
    if tense == "want":
        wants = "wants" if person == "3s" else "want"
        return VerbGroup(f"{wants} to {base}", do, f"want to {base}")
    return VerbGroup(f"{tense} {base}", tense, base)


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
