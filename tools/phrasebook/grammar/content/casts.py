"""The casts of the phrasebook: which events occur in which frames, and how often.

More than half of the corpus is short: main clauses, questions and negations of three to
nine words. The rest shows longer German sentences.
"""

from __future__ import annotations

from functools import cache

from grammar import lexicon
from grammar.content import deeds, frames, people, whereabouts
from grammar.content.nominals import of_classes
from grammar.content.scenes import (
    ANIMALS,
    PRICES,
    SUBJECTS,
    THE_PRICE,
    Cast,
    actions,
    asking,
    costing,
    described,
    existing,
    identified,
    paying,
    placed,
    professional,
    sought,
    with_recipients,
)

_DOING = (*deeds.ACTING, *deeds.HAPPENING)
_THINGS = of_classes(
    (lexicon.READING, lexicon.CLOTHES, lexicon.GIFTS, lexicon.CONTAINERS,
     lexicon.SNACKS, lexicon.DEVICES)
)  # fmt: skip
_MASSES = of_classes((lexicon.FOOD, lexicon.DRINKS))
_WEATHER = of_classes((lexicon.WEATHER,))
_HOUSES = of_classes((lexicon.BUILDINGS, lexicon.STATIONS))
_TRANSPORT = of_classes((lexicon.VEHICLES, lexicon.TRANSPORT))
_LINES = of_classes((lexicon.TRANSPORT.only("bus", "train", "tram", "ferry", "ship"),))
_ROOMS = of_classes((lexicon.ROOMS, lexicon.SQUARES, lexicon.LANDSCAPES))
_FITTINGS = of_classes((lexicon.FURNITURE, lexicon.OPENINGS))
_WORKS = of_classes((lexicon.EVENTS, lexicon.FILMS, lexicon.TALK))
_NEEDS = of_classes((lexicon.NEEDS,))
_ALL_THINGS = (
    *2 * (_THINGS,), _MASSES, _HOUSES, _TRANSPORT, _ROOMS, _FITTINGS, _WORKS, ANIMALS,
)  # fmt: skip
_ANYBODY = (*2 * (people.PERSONS,), people.PRONOUNS, people.NAMES, ANIMALS)
_IT = ((people.IT,),)
_WHO = ((people.WHO,),)
_FRIENDLY = of_classes(
    (lexicon.FAMILY, lexicon.PEOPLE.only("friend", "neighbor", "teacher", "doctor"),
     lexicon.ANIMALS)
)  # fmt: skip
_MEETING = tuple(
    v for v in (*deeds.ACTING, *deeds.FEELING) if "him" in v.pronouns.split()
)
_HANDLING = tuple(
    v
    for v in (*deeds.ACTING, *deeds.FEELING)
    if v.complements and not v.german.preposition and v.german.case == 1
    and v.name not in ("pick up", "invite", "meet", "call", "ask", "visit")
)  # fmt: skip
_ASKABLE_DEEDS = tuple(v for v in _HANDLING if not v.is_state)
_STATES = tuple(v for v in _HANDLING if v.is_state)
_HAVING = (deeds.HAVING,)

_TOLD = (
    (frames.SIMPLE, 12), (frames.PAST, 11), (frames.PRESENT, 5), (frames.FUTURE, 4),
    (frames.MODAL, 6), (frames.DENIAL, 8), (frames.QUESTION, 9),
)  # fmt: skip
_STATED = (
    (frames.STATE, 8), (frames.PAST, 4), (frames.STATE_DENIAL, 5),
    (frames.STATE_QUESTION, 5), (frames.REPORTED_STATE, 1),
    (frames.REASON_STATE, 1),
)  # fmt: skip
_RETOLD = (
    (frames.FRONTED, 3), (frames.REPORTED, 3), (frames.REASON, 2),
    (frames.CONDITION, 2), (frames.INFINITIVE, 1), (frames.WHY, 2), (frames.WHEN, 2),
)  # fmt: skip
_TIMED = ((frames.DATED, 1), (frames.CLOCKED, 1), (frames.RELATIVE, 3))
_GIVEN = (
    (frames.SIMPLE, 2), (frames.PAST, 3), (frames.PRESENT, 1), (frames.FUTURE, 1),
    (frames.MODAL, 2), (frames.DENIAL, 2), (frames.QUESTION, 2), (frames.FRONTED, 1),
    (frames.REPORTED, 1), (frames.WHEN, 1),
)  # fmt: skip
_COPULA = (
    (frames.COPULA, 8), (frames.COPULA_QUESTION, 4), (frames.COPULA_DENIAL, 4),
    (frames.REPORTED_STATE, 1),
)  # fmt: skip
_LOCATED = (
    (frames.COPULA, 3), (frames.COPULA_QUESTION, 1), (frames.COPULA_DENIAL, 1),
)  # fmt: skip
_SIMPLE_LIFE = (
    (frames.SIMPLE, 3), (frames.PAST, 2), (frames.PRESENT, 2), (frames.DENIAL, 1),
    (frames.QUESTION, 1),
)  # fmt: skip
_HAD = (
    (frames.STATE, 3), (frames.PAST, 1), (frames.STATE_DENIAL, 1),
    (frames.STATE_QUESTION, 2), (frames.LACK, 2),
)  # fmt: skip
_ABLE = ((frames.ABLE, 2), (frames.ABLE_QUESTION, 1), (frames.ABLE_DENIAL, 1))
_WEATHERS = ((frames.WEATHER, 1), (frames.WEATHER_QUESTION, 1))
_COPULA_OF_IT = tuple((frame, 1) for frame, _ in _COPULA[:3])
_IDENTIFIED = (
    (frames.IDENTITY, 4), (frames.IDENTITY_QUESTION, 2), (frames.IDENTITY_DENIAL, 2),
)  # fmt: skip
_PROFESSIONS = (
    (frames.IDENTITY, 3), (frames.IDENTITY_QUESTION, 1), (frames.IDENTITY_DENIAL, 1),
)  # fmt: skip
_EXISTING = (
    (frames.EXISTENCE, 3), (frames.EXISTENCE_QUESTION, 1), (frames.ABSENCE, 2),
)  # fmt: skip
_IN_TOWN = (
    (frames.EXISTENCE, 3), (frames.EXISTENCE_QUESTION, 2), (frames.ABSENCE, 1),
)  # fmt: skip
_PRESENT = (
    (frames.PRESENCE, 3), (frames.PRESENCE_QUESTION, 1), (frames.NOT_THERE, 1),
)  # fmt: skip
_LYING = (
    (frames.PLACED, 2), (frames.PLACED_QUESTION, 1), (frames.PLACED_REPORTED, 1),
)  # fmt: skip
_ORDERED = ((frames.ORDER, 6), (frames.BAN, 1))
_PRICED = (
    (frames.PRICED, 1), (frames.PRICED_QUESTION, 1), (frames.PRICED_REPORTED, 1),
)  # fmt: skip
_SHOWN = (*_THINGS, *_TRANSPORT, *_FITTINGS, *_FRIENDLY, *_FRIENDLY)


def _of_deeds() -> tuple[Cast, ...]:
    dogs, birds = (of_classes((lexicon.ANIMALS.only(n),)) for n in ("dog", "bird"))
    states = actions(SUBJECTS, deeds.FEELING, places=False)
    having = actions(SUBJECTS, _HAVING, places=False)
    sensing = actions(SUBJECTS, deeds.SENSING, places=False)
    wishing = actions(SUBJECTS, deeds.WISHING, places=False)
    moving = actions((_LINES,), deeds.MOVING, places=False)
    return (
        Cast("doers", actions(SUBJECTS, _DOING), _TOLD + _RETOLD),
        Cast("persons", actions((people.PEOPLE,), _DOING, places=False), _TIMED),
        Cast("states", states, _STATED),
        Cast("having", having, _HAD),
        Cast("senses", sensing, _ABLE),
        Cast("wishes", wishing, ((frames.WISH, 3), (frames.WISH_QUESTION, 1))),
        Cast("givers", with_recipients(SUBJECTS), _GIVEN),
        Cast("animals", actions((ANIMALS,), deeds.ANIMAL_LIFE), _SIMPLE_LIFE),
        Cast("voices", actions((dogs,), deeds.BARKING), _SIMPLE_LIFE[:3]),
        Cast("birds", actions((birds,), deeds.SINGING), _SIMPLE_LIFE[:3]),
        Cast("traffic", moving, (*_SIMPLE_LIFE, (frames.WHEN, 2))),
        Cast("weather", actions(_IT, deeds.WEATHER, places=False), _WEATHERS),
    )


def _of_states() -> tuple[Cast, ...]:
    aged = (people.AGED, people.AGED[:3])
    measured = (people.PERSONS, people.NAMES, *_ALL_THINGS)
    return (
        Cast("described", described(_ANYBODY), _COPULA),
        Cast("described_things", described(_ALL_THINGS), _COPULA),
        Cast("described_weather", described((_WEATHER,)), ((frames.COPULA, 1),)),
        Cast("described_it", described(_IT), _COPULA_OF_IT),
        Cast("ages", described(aged), ((frames.COPULA, 1),)),
        Cast("time", described(((people.IT_AS_TIME,),)), ((frames.IDENTITY, 1),)),
        Cast("how", described(measured, asked=True), ((frames.COPULA_WHAT, 2),)),
        Cast("identified", identified(_SHOWN), _IDENTIFIED),
        Cast("professions", professional, _PROFESSIONS),
    )


def _of_places() -> tuple[Cast, ...]:
    things = (*3 * (_THINGS,), _MASSES)
    persons = (people.PERSONS, people.PRONOUNS, people.NAMES)
    where = whereabouts
    homes = (where.BEING_AT, where.BEING_AT, where.BEING_IN_CITY)
    anything = (*_ALL_THINGS, *_ANYBODY)
    what_there_is = (*_ALL_THINGS, people.PERSONS, _NEEDS)
    beings = (people.PEOPLE, ANIMALS)
    return (
        Cast("located_things", placed(things, where.THINGS_ARE), _LOCATED),
        Cast("located_people", placed(_ANYBODY, where.PEOPLE_ARE), _LOCATED),
        Cast("at_home", placed(persons, homes), _LOCATED),
        Cast(
            "located_houses",
            placed((_HOUSES, _TRANSPORT), where.BUILDINGS_ARE),
            _LOCATED,
        ),
        Cast("where_is", sought(anything), ((frames.COPULA_WHERE, 3),)),
        Cast("existing", existing(what_there_is), _EXISTING),
        Cast("towns", existing((_HOUSES[:-4],), where.TOWNS_HAVE), _IN_TOWN),
        Cast("present_things", existing(things, where.THINGS_ARE), _PRESENT),
        Cast("present_people", existing(beings, where.PEOPLE_ARE), _PRESENT),
        Cast("lying", placed((_THINGS,), where.LYING), _LYING),
    )


def _of_questions() -> tuple[Cast, ...]:
    felt = (*_STATES, *_HAVING)
    done = (*_ASKABLE_DEEDS, *6 * (deeds.DOING,))
    met, liked = (
        tuple(v for v in _MEETING if v.is_state == is_state)
        for is_state in (False, True)
    )
    who_feels = actions(_WHO, deeds.FEELING, places=False)
    where, living, ways, origins = (
        actions(SUBJECTS, found, places=False)
        for found in (
            whereabouts.WHEREABOUTS[1:], whereabouts.WHEREABOUTS[:1],
            whereabouts.WAYS, (whereabouts.COMING,),
        )
    )  # fmt: skip
    return (
        Cast("who", actions(_WHO, _DOING), ((frames.WHO, 6),)),
        Cast("who_feels", who_feels, ((frames.WHO_STATE, 2),)),
        Cast("who_is", described(_WHO), ((frames.COPULA_WHO, 1),)),
        Cast("what", asking(SUBJECTS, done, persons=False), ((frames.WHAT, 5),)),
        Cast(
            "what_felt",
            asking(SUBJECTS, felt, persons=False),
            ((frames.WHAT_STATE, 3),),
        ),
        Cast("whom", asking(SUBJECTS, met, persons=True), ((frames.WHAT, 2),)),
        Cast(
            "whom_felt",
            asking(SUBJECTS, liked, persons=True),
            ((frames.WHAT_STATE, 1),),
        ),
        Cast("where", where, ((frames.WHERE, 2),)),
        Cast("where_live", living, ((frames.WHERE_STATE, 1),)),
        Cast("ways", ways, ((frames.WHERE_TO, 1),)),
        Cast("origins", origins, ((frames.WHERE_FROM, 1),)),
        Cast("how_much", costing((THE_PRICE,)), ((frames.WHAT_STATE, 2),)),
    )


def _of_others() -> tuple[Cast, ...]:
    you = (people.SPEAKERS[1:2],)
    called = actions((people.ADDRESSED,), deeds.ACTING, places=False)
    return (
        Cast("orders", actions(you, deeds.ACTING), _ORDERED),
        Cast("given_orders", with_recipients(you), ((frames.ORDER, 2),)),
        Cast("addressees", called, ((frames.REQUEST, 2), (frames.ADDRESSED, 2))),
        Cast("payers", paying, ((frames.PAST, 1), (frames.REPORTED, 1))),
        Cast("prices", costing(PRICES), _PRICED),
    )


@cache
def casts() -> tuple[Cast, ...]:
    """Lists the casts, always in the same order."""
    return (
        *_of_deeds(), *_of_states(), *_of_places(), *_of_questions(), *_of_others(),
    )  # fmt: skip
