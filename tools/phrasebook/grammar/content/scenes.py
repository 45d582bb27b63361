"""Events and scenes of the phrasebook, and the frames they fit.

An event is a subject, a verb and a complement (and perhaps a recipient, a price or a
place), each one lemma. A cast chooses the events of one kind; an event chooses its
phrases: the nouns' determiners and adjectives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from grammar import english, german, lexicon
from grammar.content import deeds, people, whereabouts
from grammar.content.frames import Frame
from grammar.content.nominals import (
    Nominal,
    adverbial,
    asked_for,
    how,
    invariable,
    of_classes,
    predicate,
)
from grammar.lexicon import Verb
from grammar.order import Choices
from grammar.phrases import (
    NOTHING,
    Phrase,
    Scene,
    Words,
    both,
    located,
)

Nominals: TypeAlias = tuple[Nominal, ...]
Groups: TypeAlias = tuple[Nominals, ...]
"""Nominals in groups, one of which is chosen first, as often as it is there."""

Combination: TypeAlias = tuple[str, str, str]


_GIVING = frozenset(verb.name for verb in deeds.GIVING)


class Event(NamedTuple):
    """Who does what, to whom or for how much, and where.

    Attributes:
      subjects: one or two.
      complements: one or two.
      place: a verb that governs a place, and the place.
    """

    subjects: Nominals
    verb: Verb
    complements: Nominals
    other: Nominal | None = None
    place: tuple[Verb, Nominal] | None = None

    @property
    def combinations(self) -> tuple[Combination, ...]:
        """Subject, verb and complement, which the splits keep apart.

        By their German lemmas, so that "bike" and "bicycle" are one: else a sentence of
        `test` might have the German of one of `train`.
        """
        verb = self.verb.german.lemma
        return tuple(
            (subject.german, verb, complement.german)
            for subject in self.subjects
            for complement in self.complements
        )

    def scene(self, choices: Choices, mood: str = "told") -> Scene:
        """Chooses phrases for all that take part.

        Args:
          mood: of the frame, one of `MOODS`.

        Raises:
          LookupError: something cannot be said in this mood.
        """
        is_denied = mood in ("denied", "no")
        if is_denied and len(self.complements) > 1:
            raise LookupError(mood)
        of_subject = "known" if is_denied else "told"
        subject = _one_or_both(self.subjects, choices, of_subject)
        other = self.other.phrase(choices, "known", plain=True) if self.other else None
        # Whom something is given stands behind it where English says "to".
        is_to = other is not None and self.verb.name in _GIVING and choices.below(5) < 2
        # "Not in any garden" would be kein behind a preposition, which nicht precedes.
        of_complement = "told" if self.verb.german.preposition else mood
        return Scene(
            subject,
            self.verb,
            _one_or_both(self.complements, choices, of_complement),
            other,
            is_to,
            _place(self.place, choices),
        )


def _one_or_both(nominals: Nominals, choices: Choices, mood: str) -> Phrase:
    plain = len(nominals) > 1
    phrases = [nominal.phrase(choices, mood, plain=plain) for nominal in nominals]
    return both(*phrases) if plain else phrases[0]


def _place(place: tuple[Verb, Nominal] | None, choices: Choices) -> Words:
    if place is None:
        return "", ""
    verb, where = place
    phrase = where.phrase(choices, "known", plain=True)
    return located(verb.english.particle, verb.german.preposition, phrase)


class Cast(NamedTuple):
    """Events that fit the same frames.

    Attributes:
      event: chooses one, or None where the choice makes no sense.
      frames: each with its share of the corpus.
    """

    name: str
    event: Callable[[Choices], Event | None]
    frames: tuple[tuple[Frame, int], ...]


def complements(verb: Verb) -> Groups:
    """Lists what a verb may be about: nouns, phrases and pronouns."""
    nouns = of_classes(verb.complements)
    fixed = tuple(adverbial(*words) for words in verb.phrases)
    pronouns = tuple(people.OBJECTS[word] for word in verb.pronouns.split())
    share = 2 if len(fixed) < 4 else 5
    groups: Groups = (*6 * (nouns,), *share * (fixed,), *2 * (pronouns,))
    if "him" in verb.pronouns.split():
        groups += (people.NAMES,)
    return tuple(group for group in groups if group)


def _choose(groups: Groups, choices: Choices) -> Nominal:
    return choices.of(choices.of(groups))


_COORDINATED = 9  # of so many subjects or complements one is two


def _with_another(first: Nominal, group: Nominals, choices: Choices) -> Nominals:
    """Chooses "Anna and Paul" or "bread and cheese" now and then."""
    if choices.below(_COORDINATED) or not group:
        return (first,)
    second = choices.of(group)
    if second.lemma == first.lemma or (second.noun is None) != (first.noun is None):
        return (first,)
    return first, second


SUBJECTS = (
    *4 * (people.PRONOUNS,), *4 * (people.PERSONS,), *2 * (people.NAMES,),
)  # fmt: skip
"""Subjects: pronouns two of five."""

ANIMALS = of_classes((lexicon.ANIMALS,))


_NAMED = frozenset(people.NAMES)
_GROUNDS = tuple((verb, complements(verb)[0]) for verb in whereabouts.PEOPLE_ARE[:4])


def _somewhere(verb: Verb, complement: Nominal, choices: Choices) -> bool:
    fixed = complement.fixed[0] if complement.fixed else None
    is_movable = verb.german.preposition == "" and not (fixed and fixed.is_adverbial)
    return is_movable and choices.below(5) == 0


def actions(
    subjects: Groups, doings: tuple[Verb, ...], places: bool = True
) -> Callable[[Choices], Event | None]:
    """Crosses subjects with verbs; nobody does anything to themselves."""
    with_objects = tuple((verb, complements(verb)) for verb in doings)

    def choose(choices: Choices) -> Event | None:
        verb, objects = choices.of(with_objects)
        subject, complement = _choose(subjects, choices), _choose(objects, choices)
        if subject.lemma == complement.lemma and complement.lemma:
            return None
        if (subject.lemma, complement.lemma) in people.CLASHES:
            return None
        actors: Nominals = (subject,)
        things: Nominals = (complement,)
        if subject.noun or subject in _NAMED:
            group = people.PERSONS if subject.noun else people.NAMES
            actors = _with_another(subject, group, choices)
        if complement.noun is not None and not verb.german.preposition:
            things = _with_another(complement, choices.of(objects), choices)
        if {n.lemma for n in actors} & {n.lemma for n in things}:
            return None
        place = None
        is_simple = len(actors) == len(things) == 1
        if places and is_simple and _somewhere(verb, complement, choices):
            where, grounds = choices.of(_GROUNDS)
            place = where, choices.of(grounds)
        return Event(actors, verb, things, place=place)

    return choose


def with_recipients(subjects: Groups) -> Callable[[Choices], Event | None]:
    """Crosses subjects with what they give, and to whom."""
    receivers = (
        people.PERSONS, people.PERSONS,
        tuple(n for w, n in people.OBJECTS.items() if w != "it"),
        people.NAMES[:2] + people.NAMES[3:5],
    )  # fmt: skip

    gifts = tuple((verb, of_classes(verb.complements)) for verb in deeds.GIVING)

    def choose(choices: Choices) -> Event | None:
        verb, things = choices.of(gifts)
        subject, other = _choose(subjects, choices), _choose(receivers, choices)
        thing = choices.of(things)
        if subject.lemma == other.lemma or (
            (subject.lemma, other.lemma) in people.CLASHES
        ):
            return None
        return Event((subject,), verb, (thing,), other)

    return choose


_NO_COMPLEMENT = Nominal("", fixed=(NOTHING,))


def described(
    subjects: Groups, *, asked: bool = False
) -> Callable[[Choices], Event | None]:
    """Says of somebody or something what it is like, or asks how much so."""

    def choose(choices: Choices) -> Event | None:
        subject = _choose(subjects, choices)
        adjective = choices.of(subject.predicates)
        if asked:
            return Event((subject,), whereabouts.BE, (how(adjective),))
        things: Nominals = (predicate(adjective),)
        if adjective.german and choices.below(_COORDINATED) == 0:
            other = choices.of(subject.predicates)
            if other == adjective or not other.german:
                return None
            things = (_plain(adjective), _plain(other))
        actors: Nominals = (subject,)
        if subject in _NAMED:
            actors = _with_another(subject, people.NAMES, choices)
        return Event(actors, whereabouts.BE, things)

    return choose


def _plain(adjective: lexicon.Adjective) -> Nominal:
    return Nominal(adjective.english, fixed=predicate(adjective).fixed[:1])


def placed(
    subjects: Groups, places: tuple[Verb, ...]
) -> Callable[[Choices], Event | None]:
    """Says of people or things where they are."""
    with_grounds = tuple((verb, complements(verb)) for verb in places)

    def choose(choices: Choices) -> Event | None:
        subject = _choose(subjects, choices)
        verb, grounds = choices.of(with_grounds)
        place = _choose(grounds, choices)
        if place.lemma == subject.lemma:
            return None
        return Event((subject,), verb, (place,))

    return choose


def sought(subjects: Groups) -> Callable[[Choices], Event | None]:
    """Asks of people or things where they are: they are, and that is all."""

    def choose(choices: Choices) -> Event | None:
        subject = _choose(subjects, choices)
        return Event((subject,), whereabouts.BE, (_NO_COMPLEMENT,))

    return choose


_THERE = invariable("there", "")


def existing(
    things: Groups, places: tuple[Verb, ...] = ()
) -> Callable[[Choices], Event | None]:
    """Says what there is, at one of the places if there are any."""
    with_grounds = tuple((verb, complements(verb)[0]) for verb in places)

    def choose(choices: Choices) -> Event | None:
        thing = _choose(things, choices)
        place = None
        if places:
            where, grounds = choices.of(with_grounds)
            place = where, choices.of(grounds)
            if place[1].lemma == thing.lemma:
                return None
        return Event((_THERE,), whereabouts.BE, (thing,), place=place)

    return choose


_SHOWN = (
    (invariable("this", "das"), False), (invariable("this", "das"), False),
    (invariable("that", "das"), False), (invariable("it", "es"), False),
    (invariable("these", "das", "3p"), True), (invariable("those", "das", "3p"), True),
)  # fmt: skip


def identified(things: Nominals) -> Callable[[Choices], Event | None]:
    """Says what something is: "this is my car", "these are books"."""
    of_number = {
        plural: tuple(n.of_number(plural=plural) for n in things)
        for plural in (False, True)
    }

    def choose(choices: Choices) -> Event | None:
        subject, plural = choices.of(_SHOWN)
        return Event((subject,), whereabouts.BE, (choices.of(of_number[plural]),))

    return choose


def professional(choices: Choices) -> Event | None:
    """Says what somebody is: "she is a doctor", "Paul is my brother"."""
    kind = choices.below(8)
    if kind < 3:
        who, what = people.HIM, people.PROFESSIONS
    elif kind < 6:
        who, what = people.HER, people.PROFESSIONS_OF_WOMEN
    elif kind == 6:
        who, what = (people.THEY,), people.PROFESSIONS_OF_MANY
    else:
        who, what = people.SPEAKERS[:2], people.PROFESSIONS
    if kind in (2, 5):
        relatives = (people.MALE_RELATIVES, people.FEMALE_RELATIVES)[kind == 5]
        who, what = who[:5], relatives
    return Event((choices.of(who),), whereabouts.BE, (choices.of(what),))


def asking(
    subjects: Groups, doings: tuple[Verb, ...], *, persons: bool
) -> Callable[[Choices], Event | None]:
    """Asks for the complement: who(m), what, which book, how much milk."""
    word = ("who", ("wer", "wen", "wem")) if persons else ("what", ("was",) * 3)
    asked = Nominal(word[0], fixed=(Phrase(*word),))

    with_nouns = tuple((verb, of_classes(verb.complements)) for verb in doings)

    def choose(choices: Choices) -> Event | None:
        (verb, nouns), subject = choices.of(with_nouns), _choose(subjects, choices)
        if not persons and nouns and choices.below(5) < 2:
            return Event((subject,), verb, (asked_for(choices.of(nouns)),))
        return Event((subject,), verb, (asked,))

    return choose


def _price(euros: int) -> Nominal:
    words = f"{english.number(euros)} euros"
    return Nominal(words, fixed=(Phrase(words, (f"{german.number(euros)} Euro",) * 3),))


PRICES = tuple(map(_price, people.NUMBERS))
THE_PRICE = Nominal("how much", fixed=(Phrase("how much", ("wie viel",) * 3),))


_GOODS = of_classes(deeds.PRICED)


def costing(prices: Nominals) -> Callable[[Choices], Event | None]:
    """Says what things cost, or asks."""

    def choose(choices: Choices) -> Event | None:
        return Event((choices.of(_GOODS),), deeds.COSTING, (choices.of(prices),))

    return choose


def paying(choices: Choices) -> Event | None:
    """Says who pays how much for something."""
    what = choices.of(_GOODS)
    return Event(
        (choices.of(people.PERSONS),), deeds.PAYING[0], (what,), choices.of(PRICES)
    )
