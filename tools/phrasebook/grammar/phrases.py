"""Noun phrases, pronouns and scenes of the phrasebook, in both languages at once."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from grammar.determiners import Determiner
from grammar.english import with_article
from grammar.german import (
    DEFINITE,
    Case,
    GermanDeterminer,
    decline,
    with_preposition,
)
from grammar.lexicon import Adjective, Noun, Verb

Words: TypeAlias = tuple[str, str]
"""The same words, or the same sentence, in English and in German."""

Cases: TypeAlias = tuple[str, str, str]
"""Nominative, accusative, dative."""

_KEIN = GermanDeterminer("kein", "ein-word")


class Phrase(NamedTuple):
    """A noun phrase, a pronoun, or what else may be a complement.

    Attributes:
      person: "1s" to "3p", what a verb agrees with.
      relative: the nominative relative pronoun, or "" where none can follow.
      vocative: how somebody addressed as "you" is called.
      denied: the cases of what denies it with kein, or () where nicht does.
      bare: the English phrase without its determiner: "red car".
      is_pronoun: whether German moves it to the front of the middle field.
      is_adverbial: whether nicht stands before it: "nicht nach Hause", "nicht müde".
    """

    english: str
    german: Cases
    person: str = "3s"
    relative: str = ""
    vocative: Words = ("", "")
    denied: Cases | tuple[()] = ()
    bare: str = ""
    is_pronoun: bool = False
    is_adverbial: bool = False


NOTHING = Phrase("", ("", "", ""))
"""The complement of an intransitive verb."""


class Scene(NamedTuple):
    """Who does what: all of a clause but its tense and time.

    Attributes:
      other: to whom, in the dative, or for how much.
      is_to: whether English says "to" whom, behind the complement.
    """

    subject: Phrase
    verb: Verb
    complement: Phrase
    other: Phrase | None = None
    is_to: bool = False
    place: Words = ("", "")


@lru_cache(maxsize=1 << 15)
def noun_phrase(
    determiner: Determiner, adjectives: tuple[Adjective, ...], noun: Noun
) -> Phrase:
    """Makes a noun phrase of the determiner's number, declined in German."""
    plural = determiner.plural
    head = noun.english_plural if plural else noun.english
    words = join(*(adjective.english for adjective in adjectives), head)
    if determiner.english == "a":
        english = with_article(words)
    else:
        english = join(determiner.english, words)
    stems = " ".join(adjective.german for adjective in adjectives)

    def cases(german: GermanDeterminer) -> Cases:
        nominative, accusative, dative = (
            decline(noun.german, case, german, adjective=stems, plural=plural)
            for case in Case
        )
        return nominative, accusative, dative

    gender = "p" if plural else noun.german.gender
    return Phrase(
        english,
        cases(determiner.german),
        "3p" if plural else "3s",
        DEFINITE[gender][Case.NOM],
        denied=cases(_KEIN) if determiner.denial == "kein" else (),
        bare=words,
    )


def both(first: Phrase, second: Phrase) -> Phrase:
    """Joins two phrases by "and"; speakers among them are "we"."""
    nominative, accusative, dative = (
        f"{one} und {other}"
        for one, other in zip(first.german, second.german, strict=True)
    )
    return Phrase(
        f"{first.english} and {second.english}",
        (nominative, accusative, dative),
        "1p" if second.person == "1s" else "3p",
        relative="die",
        is_adverbial=first.is_adverbial,
    )


def located(preposition: str, german: str, phrase: Phrase) -> Words:
    """Makes a place of a phrase: "in the garden", "im Garten"."""
    return (
        f"{preposition} {phrase.english}",
        with_preposition(german, phrase.german[Case.DAT]),
    )


def join(*words: str) -> str:
    """Joins words by spaces, leaving out empty ones."""
    return " ".join(filter(None, words))
