"""Noun phrases and scenes of the phrasebook, in both languages at once."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeAlias

from t2t_jax.data.grammar.english import with_article
from t2t_jax.data.grammar.german import DEFINITE, Case, decline, with_preposition
from t2t_jax.data.grammar.lexicon import Adjective, Determiner, Noun
from t2t_jax.data.grammar.verbs import Verb

Words: TypeAlias = tuple[str, str]
"""The same words, or the same sentence, in English and in German."""


class Phrase(NamedTuple):
    """A noun phrase or pronoun.

    Attributes:
      english: the English phrase.
      german: nominative, accusative, dative.
      person: "1s" to "3p", what a verb agrees with.
      relative: the nominative relative pronoun, or "" where none can follow.
      vocative: how somebody addressed as "you" is called.
    """

    english: str
    german: tuple[str, str, str]
    person: str = "3s"
    relative: str = ""
    vocative: Words = ("", "")


class Scene(NamedTuple):
    """Who does what: all of a clause but its tense and time.

    Attributes:
      subject: who.
      verb: does.
      complements: what (and to whom), in both languages.
    """

    subject: Phrase
    verb: Verb
    complements: Words


@cache
def noun_phrase(
    determiner: Determiner, adjective: Adjective | None, noun: Noun
) -> Phrase:
    """Makes a noun phrase, declined in German.

    Args:
      determiner: its first word; decides its number.
      adjective: in between, or None.
      noun: its head.

    Returns:
      The phrase in both languages.
    """
    plural = determiner.plural
    head = noun.english_plural if plural else noun.english
    words = join(adjective.english if adjective else "", head)
    if determiner.english == "a":
        english = with_article(words)
    else:
        english = join(determiner.english, words)
    stem = adjective.german if adjective else ""
    nominative, accusative, dative = (
        decline(noun.german, case, determiner.german, adjective=stem, plural=plural)
        for case in Case
    )
    gender = "p" if plural else noun.german.gender
    return Phrase(
        english,
        (nominative, accusative, dative),
        "3p" if plural else "3s",
        DEFINITE[gender][Case.NOM],
    )


def scene(
    subject: Phrase, verb: Verb, complement: Phrase, other: Phrase | None = None
) -> Scene:
    """Puts a verb's complements in order: dative or price first, in both languages.

    Args:
      subject: who.
      verb: does.
      complement: what, in the case that the verb governs.
      other: a recipient or a price, or None.

    Returns:
      The scene.
    """
    german = complement.german[verb.german.case]
    if verb.german.preposition:
        german = with_preposition(verb.german.preposition, german)
    english = join(verb.english.particle, complement.english)
    if other is not None:
        english = f"{other.english} {english}"
        german = f"{other.german[Case.DAT]} {german}"
    return Scene(subject, verb, (english, german))


def join(*words: str) -> str:
    """Joins words by spaces, leaving out empty ones.

    Example:
      >>> join("the", "", "coat")
      'the coat'
    """
    return " ".join(filter(None, words))
