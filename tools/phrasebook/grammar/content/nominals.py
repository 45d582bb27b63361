"""Subjects and complements of the phrasebook: lemmas and their phrases.

The lemmas and the verb determine the split of a sentence; the phrase of a lemma
(article, number, adjectives) does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from grammar import determiners
from grammar.determiners import MOODS, ByMood, Determiner
from grammar.lexicon import Adjective, Noun, NounClass
from grammar.order import Choices
from grammar.phrases import Phrase, noun_phrase


class Nominal(NamedTuple):
    """One lemma and everything that may be said of it.

    Attributes:
      fixed: its phrases, if it has no noun (names, pronouns, prices).
      determiners: what may stand before its noun, of each of `MOODS`.
      kind: the class whose adjectives its noun takes.
      predicates: what may be said of it by "is".
    """

    lemma: str
    fixed: tuple[Phrase, ...] = ()
    noun: Noun | None = None
    determiners: ByMood = ()
    kind: NounClass | None = None
    predicates: tuple[Adjective, ...] = ()

    @property
    def german(self) -> str:
        """The German lemma, as in combinations."""
        if self.noun is not None:
            return self.noun.german.singular
        nominative, accusative, _ = self.fixed[0].german
        return nominative or accusative

    def phrase(
        self, choices: Choices, mood: str = "told", *, plain: bool = False
    ) -> Phrase:
        """Chooses one of its phrases; mostly without an adjective.

        Args:
          mood: one of `MOODS`.
          plain: whether adjectives are rarer still.

        Raises:
          LookupError: none of its determiners is of this mood.
        """
        if self.noun is None or self.kind is None:
            return choices.of(self.fixed)
        fitting = self.determiners[MOODS.index(mood)]
        if not fitting:
            raise LookupError(mood)
        adjectives = _adjectives(self.kind, choices, plain=plain)
        return noun_phrase(choices.of(fitting), adjectives, self.noun)

    def of_number(self, *, plural: bool) -> Nominal:
        """Keeps the determiners of a number."""
        kept = determiners.of_number(self.determiners, plural=plural)
        return self._replace(determiners=kept)


def _adjectives(
    kind: NounClass, choices: Choices, *, plain: bool
) -> tuple[Adjective, ...]:
    """Chooses none (two of three), one, or now and then one and a color."""
    number = choices.below(15)
    if number < (13 if plain else 10) or not kind.all_adjectives:
        return ()
    if number == 10 and kind.colors:
        return choices.of(kind.adjectives), choices.of(kind.colors)
    return (choices.of(kind.all_adjectives),)


def of_classes(classes: Iterable[NounClass]) -> tuple[Nominal, ...]:
    """Lists the nouns of classes."""
    return tuple(
        Nominal(
            noun.english,
            noun=noun,
            determiners=kind.determiners,
            kind=kind,
            predicates=kind.all_adjectives,
        )
        for kind in classes
        for noun in kind.nouns
    )


def invariable(
    lemma: str,
    german: str,
    person: str = "3s",
    *,
    predicates: tuple[Adjective, ...] = (),
) -> Nominal:
    """Makes a name or a pronoun that is a subject."""
    phrase = Phrase(lemma, (german,) * 3, person)
    return Nominal(lemma, fixed=(phrase,), predicates=predicates)


def pronoun(english: str, accusative: str, dative: str) -> Nominal:
    """Makes a pronoun that is an object."""
    german = ("", accusative, dative)
    return Nominal(english, fixed=(Phrase(english, german, is_pronoun=True),))


def adverbial(english: str, german: str) -> Nominal:
    """Makes a complement that is no noun phrase, such as "at home".

    The German "keine Musik" is Musik, and what denies it.
    """
    first, _, rest = german.partition(" ")
    if first.startswith("kein"):
        phrase = Phrase(english, (rest,) * 3, denied=(german,) * 3)
    else:
        phrase = Phrase(english, (german,) * 3, is_adverbial=bool(german))
    return Nominal(english, fixed=(phrase,))


def predicate(adjective: Adjective) -> Nominal:
    """Makes what an adjective says of somebody: "tired", "very tired"."""
    english, german = adjective.english, adjective.predicate
    plain = _invariant(english, german)
    degrees = (
        *6 * (plain,),
        *2 * (_invariant(f"very {english}", f"sehr {german}"),),
        _invariant(f"too {english}", f"zu {german}"),
    )
    return Nominal(english, fixed=degrees)


def how(adjective: Adjective) -> Nominal:
    """Makes what asks for an adjective: "how old"."""
    words = f"how {adjective.english}", f"wie {adjective.predicate}"
    return Nominal(words[0], fixed=(_invariant(*words),))


def _invariant(english: str, german: str) -> Phrase:
    return Phrase(english, (german,) * 3, is_adverbial=True)


def asked_for(nominal: Nominal) -> Nominal:
    """Makes "which book", "how many books" or "how much milk" of a noun."""
    words: tuple[Determiner, ...]
    if any(d is determiners.NONE for d in nominal.determiners[0]):
        words = determiners.HOW_MUCH
    elif any(d.plural for d in nominal.determiners[0]):
        words = determiners.WHICH_OR_HOW_MANY
    else:
        words = determiners.WHICH
    return nominal._replace(
        lemma=f"{words[0].english} {nominal.lemma}", determiners=len(MOODS) * (words,)
    )
