"""Who takes part in the scenes of the phrasebook, and which frames they fit.

An event is a subject, a verb and a complement (and perhaps a recipient or a price),
each one lemma. How it may be told is the product of the phrases for each of them: the
noun's determiners times its adjectives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from math import prod
from typing import NamedTuple

from t2t_jax.data.grammar import english, frames, lexicon, verbs
from t2t_jax.data.grammar import german_numbers as german
from t2t_jax.data.grammar.phrases import Phrase, Scene, noun_phrase, scene


class Nominal(NamedTuple):
    """One lemma and everything that may be said of it.

    Attributes:
      lemma: its English name, which stands for it in combinations.
      fixed: its phrases, if they have no parts (names, pronouns, prices).
      noun: else its noun,
      determiners: what may stand before it,
      adjectives: and in between; None for no adjective.
    """

    lemma: str
    fixed: tuple[Phrase, ...] = ()
    noun: lexicon.Noun | None = None
    determiners: tuple[lexicon.Determiner, ...] = ()
    adjectives: tuple[lexicon.Adjective | None, ...] = ()

    @property
    def size(self) -> int:
        """The number of its phrases."""
        return len(self.fixed) or len(self.determiners) * len(self.adjectives)

    def phrase(self, index: int) -> Phrase:
        """Makes phrase `index`, of 0 to `size` - 1."""
        if self.noun is None:
            return self.fixed[index]
        which, adjective = divmod(index, len(self.adjectives))
        return noun_phrase(
            self.determiners[which], self.adjectives[adjective], self.noun
        )


class Event(NamedTuple):
    """Who does what.

    Attributes:
      subject: who.
      verb: does.
      complement: what.
      other: to whom, or for how much.
    """

    subject: Nominal
    verb: verbs.Verb
    complement: Nominal
    other: Nominal | None

    @property
    def combination(self) -> tuple[str, str, str]:
        """The lemmas of subject, verb and complement: what the splits keep apart."""
        verb = self.verb.english
        return (
            self.subject.lemma,
            f"{verb.base} {verb.particle}".rstrip(),
            self.complement.lemma,
        )

    @property
    def size(self) -> int:
        """The number of its scenes."""
        others = self.other.size if self.other else 1
        return prod((self.subject.size, self.complement.size, others))

    def scene(self, index: int) -> Scene:
        """Makes scene `index`, of 0 to `size` - 1."""
        index, subject = divmod(index, self.subject.size)
        other, complement = divmod(index, self.complement.size)
        return scene(
            self.subject.phrase(subject),
            self.verb,
            self.complement.phrase(complement),
            self.other.phrase(other) if self.other else None,
        )


class Cast(NamedTuple):
    """Events that fit the same frames.

    Attributes:
      name: unique.
      events: the events.
      frames: the frames, each with its share of the corpus.
    """

    name: str
    events: tuple[Event, ...]
    frames: tuple[tuple[frames.Frame, int], ...]


def _nominals(
    classes: Iterable[lexicon.NounClass], *, only: frozenset[lexicon.Determiner] | None
) -> tuple[Nominal, ...]:
    return tuple(
        Nominal(
            noun.english,
            noun=noun,
            determiners=tuple(d for d in kind.determiners if not only or d in only),
            adjectives=(None, *kind.adjectives),
        )
        for kind in classes
        for noun in kind.nouns
    )


def _same(lemma: str, german: str, person: str = "3s") -> Nominal:
    return Nominal(lemma, fixed=(Phrase(lemma, (german,) * 3, person),))


def _addressee(name: str, german: str, pronoun: str, person: str) -> Nominal:
    you = Phrase("you", (pronoun,) * 3, person, vocative=(name, german))
    return Nominal(name, fixed=(you,))


_PERSONS = _nominals((lexicon.PEOPLE, lexicon.FAMILY), only=None)
_SPEAKERS = (_same("I", "ich", "1s"), _same("we", "wir", "1p"))
_NAMED = (
    _same("she", "sie"),
    _same("they", "sie", "3p"),
    _same("Anna", "Anna"),
    _same("Paul", "Paul"),
    _same("Mr. Weber", "Herr Weber"),
    _same("Mrs. Klein", "Frau Klein"),
)
_ADDRESSED = (
    _addressee("Anna", "Anna", "du", "2s"),
    _addressee("Paul", "Paul", "du", "2s"),
    _addressee("Mr. Weber", "Herr Weber", "Sie", "3p"),
    _addressee("Mrs. Klein", "Frau Klein", "Sie", "3p"),
    _addressee("Anna and Paul", "Anna und Paul", "ihr", "2p"),
    _addressee("children", "Kinder", "ihr", "2p"),
)


def _price(euros: int) -> Nominal:
    """So many euros in words, or that and some cents in digits."""
    phrases = [(f"{english.number(euros)} euros", f"{german.number(euros)} Euro")]
    phrases += [(f"{euros}.{c} euros", f"{euros},{c} Euro") for c in (50, 95)]
    return Nominal(
        str(euros), fixed=tuple(Phrase(there, (hier,) * 3) for there, hier in phrases)
    )


def _events(
    subjects: Sequence[Nominal],
    doings: Iterable[verbs.Verb],
    *,
    others: Sequence[Nominal | None] = (None,),
    only: frozenset[lexicon.Determiner] | None = None,
) -> tuple[Event, ...]:
    """Crosses everybody with everything; nobody does anything to themselves."""
    return tuple(
        Event(subject, verb, complement, other)
        for verb in doings
        for complement in _nominals(verb.complements, only=only)
        for other in others
        for subject in subjects
        if subject.lemma not in (complement.lemma, other and other.lemma)
    )


@cache
def casts() -> tuple[Cast, ...]:
    """Lists the casts; the corpus is all their events in all their frames.

    Returns:
      The casts, always in the same order.
    """
    prices = tuple(map(_price, range(2, 100)))
    any_price = Nominal("", fixed=tuple(chain(*(price.fixed for price in prices))))
    goods = _nominals(verbs.PRICED, only=None)
    things = _nominals((lexicon.READING, lexicon.CLOTHES, lexicon.GIFTS), only=None)
    costing = tuple(
        Event(thing, verbs.COSTING, price, None) for thing in goods for price in prices
    )
    telling = (
        (frames.PROGRESSIVE, 2), (frames.STATEMENT, 2), (frames.FRONTED, 3),
        (frames.REPORTED, 3), (frames.REASON, 2), (frames.CONDITION, 3),
        (frames.INFINITIVE, 2),
    )  # fmt: skip
    asking = ((frames.QUESTION, 2), (frames.WHY, 1), (frames.WHEN, 1))
    timed = ((frames.DATED, 2), (frames.CLOCKED, 2), (frames.RELATIVE, 3))
    addressing = ((frames.REQUEST, 4), (frames.ADDRESSED_NOW, 3), (frames.ADDRESSED, 3))
    placing = (
        (frames.PLACED, 1), (frames.PLACED_FRONTED, 1), (frames.PLACED_QUESTION, 1),
        (frames.PLACED_REPORTED, 1),
    )  # fmt: skip
    pricing = (
        (frames.PRICED, 2), (frames.PRICED_QUESTION, 1), (frames.PRICED_REPORTED, 2),
    )  # fmt: skip
    paying = ((frames.STATEMENT, 2), (frames.FRONTED, 1), (frames.REPORTED, 2))
    doing, others = verbs.DOING, _nominals((lexicon.PEOPLE,), only=lexicon.DEFINITE)
    return (
        Cast("persons", _events(_PERSONS, doing), telling + asking + timed),
        Cast("names", _events(_NAMED, doing), telling + asking),
        Cast("speakers", _events(_SPEAKERS, doing), telling),
        Cast(
            "deniers",
            _events(_PERSONS, doing, only=lexicon.DEFINITE),
            ((frames.DENIAL, 2),),
        ),
        Cast("addressees", _events(_ADDRESSED, verbs.ACTING), addressing),
        Cast("givers", _events(_NAMED, verbs.GIVING, others=others), telling + asking),
        Cast("places", _events(things, verbs.LYING), placing),
        Cast("payers", _events(_PERSONS, verbs.PAYING, others=(any_price,)), paying),
        Cast("prices", costing, pricing),
    )
