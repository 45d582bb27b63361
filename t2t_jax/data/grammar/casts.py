"""The casts of the phrasebook: which events are told in which frames, and how often.

More than half of the corpus is short and plain: main clauses, questions and denials of
three to nine words. The rest shows what German does with longer ones.
"""

from __future__ import annotations

from functools import cache

from t2t_jax.data.grammar import frames, lexicon, people, verbs
from t2t_jax.data.grammar.nominals import of_classes
from t2t_jax.data.grammar.scenes import (
    ANIMALS,
    PRICES,
    SUBJECTS,
    THE_PRICE,
    Cast,
    costing,
    deeds,
    described,
    existing,
    identified,
    paying,
    placed,
    professional,
    asking,
    with_recipients,
)

_DOING = (*verbs.ACTING, *verbs.HAPPENING)
_THINGS = of_classes(
    (lexicon.READING, lexicon.CLOTHES, lexicon.GIFTS, lexicon.CONTAINERS,
     lexicon.SNACKS, lexicon.DEVICES)
)  # fmt: skip
_MASSES = of_classes((lexicon.FOOD, lexicon.DRINKS))
_WEATHER = of_classes((lexicon.WEATHER,))
_HOUSES = of_classes((lexicon.BUILDINGS, lexicon.STATIONS))
_TRANSPORT = of_classes((lexicon.VEHICLES, lexicon.TRANSPORT))
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
    v for v in (*verbs.ACTING, *verbs.FEELING) if "him" in v.pronouns.split()
)
_HANDLING = tuple(
    v
    for v in (*verbs.ACTING, *verbs.FEELING)
    if v.complements and not v.german.preposition and v.german.case == 1
    and v.name not in ("pick up", "invite", "meet", "call", "ask", "visit")
)  # fmt: skip
_ASKABLE_DEEDS = tuple(v for v in _HANDLING if not v.is_state)
_STATES = tuple(v for v in _HANDLING if v.is_state)
_HAVING = (verbs.HAVING,)

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


@cache
def casts() -> tuple[Cast, ...]:
    """Lists the casts, always in the same order."""
    return (
        Cast("doers", deeds(SUBJECTS, _DOING), _TOLD + _RETOLD),
        Cast("persons", deeds((people.PEOPLE,), _DOING, places=False), _TIMED),
        Cast("states", deeds(SUBJECTS, verbs.FEELING, places=False), _STATED),
        Cast(
            "having",
            deeds(SUBJECTS, _HAVING, places=False),
            ((frames.STATE, 3), (frames.PAST, 1), (frames.STATE_DENIAL, 1),
             (frames.STATE_QUESTION, 2), (frames.LACK, 2)),
        ),
        Cast("senses", deeds(SUBJECTS, verbs.SENSING, places=False),
             ((frames.ABLE, 2), (frames.ABLE_QUESTION, 1), (frames.ABLE_DENIAL, 1))),
        Cast("wishes", deeds(SUBJECTS, verbs.WISHING, places=False),
             ((frames.WISH, 3), (frames.WISH_QUESTION, 1))),
        Cast("givers", with_recipients(SUBJECTS), _GIVEN),
        Cast("animals", deeds((ANIMALS,), verbs.ANIMAL_LIFE), _SIMPLE_LIFE),
        Cast(
            "voices",
            deeds((of_classes((lexicon.ANIMALS.only("dog"),)),), verbs.BARKING),
            _SIMPLE_LIFE[:3],
        ),
        Cast(
            "birds",
            deeds((of_classes((lexicon.ANIMALS.only("bird"),)),), verbs.SINGING),
            _SIMPLE_LIFE[:3],
        ),
        Cast("traffic", deeds((_TRANSPORT[5:],), verbs.MOVING, places=False), _SIMPLE_LIFE
             + ((frames.WHEN, 2),)),
        Cast("weather", deeds(_IT, verbs.WEATHER, places=False),
             ((frames.WEATHER, 1), (frames.WEATHER_QUESTION, 1))),
        Cast("described", described(_ANYBODY), _COPULA),
        Cast("described_things", described(_ALL_THINGS), _COPULA),
        Cast("described_weather", described((_WEATHER,)), ((frames.COPULA, 1),)),
        Cast("described_it", described(_IT), ((frames.COPULA, 1),
             (frames.COPULA_QUESTION, 1), (frames.COPULA_DENIAL, 1))),
        Cast("ages", described((people.AGED, people.AGED[:3])), ((frames.COPULA, 1),)),
        Cast("time", described(((people.IT_AS_TIME,),)), ((frames.IDENTITY, 1),)),
        Cast("how", described((people.PERSONS, people.NAMES, *_ALL_THINGS), asked=True),
             ((frames.COPULA_WHAT, 2),)),
        Cast("located_things", placed((*3 * (_THINGS,), _MASSES), verbs.THINGS_ARE),
             _LOCATED),
        Cast("located_people", placed(_ANYBODY, verbs.PEOPLE_ARE), _LOCATED),
        Cast(
            "at_home",
            placed((people.PERSONS, people.PRONOUNS, people.NAMES),
                   (verbs.BEING_AT, verbs.BEING_AT, verbs.BEING_IN_CITY)),
            _LOCATED,
        ),
        Cast("located_houses", placed((_HOUSES, _TRANSPORT), verbs.BUILDINGS_ARE),
             _LOCATED),
        Cast("where_is", placed((*_ALL_THINGS, *_ANYBODY), (verbs.BE,), asked=True),
             ((frames.COPULA_WHERE, 3),)),
        Cast("existing", existing((*_ALL_THINGS, people.PERSONS, _NEEDS)),
             ((frames.EXISTENCE, 3), (frames.EXISTENCE_QUESTION, 1), (frames.ABSENCE, 2))),
        Cast("towns", existing((_HOUSES[:-4],), verbs.TOWNS_HAVE),
             ((frames.EXISTENCE, 3), (frames.EXISTENCE_QUESTION, 2), (frames.ABSENCE, 1))),
        Cast("present_things", existing((*3 * (_THINGS,), _MASSES), verbs.THINGS_ARE),
             ((frames.PRESENCE, 3), (frames.PRESENCE_QUESTION, 1), (frames.NOT_THERE, 1))),
        Cast("present_people", existing((people.PEOPLE, ANIMALS), verbs.PEOPLE_ARE),
             ((frames.PRESENCE, 3), (frames.PRESENCE_QUESTION, 1), (frames.NOT_THERE, 1))),
        Cast("identified",
             identified((*_THINGS, *_TRANSPORT, *_FITTINGS, *_FRIENDLY, *_FRIENDLY)),
             ((frames.IDENTITY, 4), (frames.IDENTITY_QUESTION, 2),
              (frames.IDENTITY_DENIAL, 2))),
        Cast("professions", professional,
             ((frames.IDENTITY, 3), (frames.IDENTITY_QUESTION, 1),
              (frames.IDENTITY_DENIAL, 1))),
        Cast("who", deeds(_WHO, _DOING), ((frames.WHO, 4),)),
        Cast("who_feels", deeds(_WHO, verbs.FEELING, places=False),
             ((frames.WHO_STATE, 2),)),
        Cast("who_is", described(_WHO), ((frames.COPULA_WHO, 1),)),
        Cast("what", asking(SUBJECTS, (*_ASKABLE_DEEDS, *6 * (verbs.DOING,)), persons=False),
             ((frames.WHAT, 5),)),
        Cast("what_felt", asking(SUBJECTS, (*_STATES, *_HAVING), persons=False),
             ((frames.WHAT_STATE, 3),)),
        Cast("whom", asking(SUBJECTS, tuple(v for v in _MEETING if not v.is_state),
             persons=True), ((frames.WHAT, 2),)),
        Cast("whom_felt", asking(SUBJECTS, tuple(v for v in _MEETING if v.is_state),
             persons=True), ((frames.WHAT_STATE, 1),)),
        Cast("where", deeds(SUBJECTS, verbs.WHEREABOUTS[1:], places=False),
             ((frames.WHERE, 2),)),
        Cast("where_live", deeds(SUBJECTS, verbs.WHEREABOUTS[:1], places=False),
             ((frames.WHERE_STATE, 1),)),
        Cast("ways", deeds(SUBJECTS, verbs.WAYS, places=False), ((frames.WHERE_TO, 1),)),
        Cast("origins", deeds(SUBJECTS, (verbs.COMING,), places=False),
             ((frames.WHERE_FROM, 1),)),
        Cast("orders", deeds((people.SPEAKERS[1:2],), verbs.ACTING),
             ((frames.ORDER, 6), (frames.BAN, 1))),
        Cast("given_orders", with_recipients((people.SPEAKERS[1:2],)),
             ((frames.ORDER, 2),)),
        Cast("addressees", deeds((people.ADDRESSED,), verbs.ACTING, places=False),
             ((frames.REQUEST, 2), (frames.ADDRESSED, 2))),
        Cast("lying", placed((_THINGS,), verbs.LYING),
             ((frames.PLACED, 2), (frames.PLACED_QUESTION, 1), (frames.PLACED_REPORTED, 1))),
        Cast("payers", paying, ((frames.PAST, 1), (frames.REPORTED, 1))),
        Cast("prices", costing(PRICES),
             ((frames.PRICED, 1), (frames.PRICED_QUESTION, 1), (frames.PRICED_REPORTED, 1))),
        Cast("how_much", costing((THE_PRICE,)), ((frames.WHAT_STATE, 2),)),
    )  # fmt: skip
