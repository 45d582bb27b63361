"""Locations of things and people in the phrasebook, and questions about them."""

from __future__ import annotations

from grammar.german_verbs import german_verb
from grammar.lexicon import (
    ANIMALS,
    ANYBODY,
    BUILDINGS,
    CITIES,
    CLOTHES,
    CONTAINERS,
    DRINKS,
    FOOD,
    FURNITURE,
    GIFTS,
    LANDSCAPES,
    LANGUAGES,
    OPENINGS,
    PEOPLE,
    ROOMS,
    SQUARES,
    STATIONS,
    THEM,
    VEHICLES,
    NounClass,
    Verb,
    make_verb,
)

BE = make_verb("be: was is", "sein", governs="nom", is_state=True)


def _being(where: str, german: str, *complements: NounClass, phrases: str = "") -> Verb:
    return BE._replace(
        english=BE.english._replace(particle=where),
        german=german_verb("sein", governs=f"{german} dat"),
        complements=complements,
        phrases=make_verb("be", "sein", phrases=phrases).phrases,
    )


_SEATS = FURNITURE.only("chair", "bench", "sofa", "bed")
_OPEN_AIR = LANDSCAPES.only("garden", "park", "forest", "city", "village")
_STREET = SQUARES.only("street")
THINGS_ARE = (
    *2 * (_being("on", "auf", FURNITURE),),
    _being("under", "unter", FURNITURE),
    _being("behind", "hinter", FURNITURE, OPENINGS),
    _being("next to", "neben", FURNITURE, OPENINGS),
    *2 * (_being("in", "in", CONTAINERS, ROOMS),),
    _being("in", "in", CONTAINERS, ROOMS, BUILDINGS, VEHICLES.only("car")),
)
"""Where things may be."""

PEOPLE_ARE = (
    *2 * (_being("in", "in", ROOMS, BUILDINGS, _OPEN_AIR),),
    _being("in", "auf", _STREET),
    _being("at", "an", STATIONS),
    _being("on", "auf", _SEATS, SQUARES.only("bridge")),
    _being("behind", "hinter", BUILDINGS, OPENINGS, FURNITURE),
    _being("next to", "neben", BUILDINGS, OPENINGS, FURNITURE),
    _being("in front of", "vor", BUILDINGS, OPENINGS, VEHICLES),
    _being("under", "unter", FURNITURE.only("table", "bed", "chair")),
)
"""Where people and animals may be."""

BUILDINGS_ARE = (
    _being("in", "in", LANDSCAPES.only("city", "village", "park", "forest")),
    _being("in", "auf", _STREET),
    _being("at", "an", STATIONS),
    _being("behind", "hinter", BUILDINGS, STATIONS),
    _being("next to", "neben", BUILDINGS, STATIONS, SQUARES),
    _being("in front of", "vor", BUILDINGS, STATIONS),
)
"""Where buildings and vehicles may be."""

TOWNS_HAVE = (BUILDINGS_ARE[0],)

BEING_AT = BE._replace(
    phrases=(("at home", "zu Hause"), ("here", "hier"), ("at school", "in der Schule"))
)
BEING_IN_CITY = _being("in", "in", phrases=CITIES)
WHEREABOUTS = (
    make_verb("live", "wohnen", phrases="=", is_state=True),
    make_verb("work", "arbeiten", phrases="="),
    make_verb("sleep: slept", "schlafen: schläf geschlafen", phrases="="),
    make_verb("swim: swam", "schwimmen: - ist geschwommen", phrases="="),
    make_verb("play", "spielen", phrases="=, football=keinen Fußball"),
    make_verb("wait", "warten", phrases="="),
    make_verb("eat: ate", "essen: iss gegessen", phrases="="),
    make_verb("learn", "lernen", phrases=LANGUAGES),
    make_verb("buy: bought", "kaufen", FOOD, DRINKS, CLOTHES),
    make_verb("meet: met", "treffen: triff getroffen", PEOPLE, pronouns=ANYBODY),
    make_verb("find: found", "finden: - gefunden", GIFTS, ANIMALS, pronouns=THEM),
)  # fmt: skip
"""What "where" asks about."""

WAYS = (
    make_verb("go: went goes", "gehen: - ist gegangen", phrases="="),
    make_verb("travel", "reisen: - ist", phrases="="),
    make_verb("fly: flew", "fliegen: - ist geflogen", phrases="="),
    make_verb("drive: drove", "fahren: fähr ist gefahren", phrases="="),
)  # fmt: skip
"""What "where" asks the way of."""

COMING = make_verb("come from: came", "kommen: - ist gekommen", governs="aus dat",
    phrases="=", is_state=True)  # fmt: skip

LYING = (
    make_verb("lie on: lay", "liegen: - gelegen", FURNITURE, governs="auf dat"),
    make_verb("lie under: lay", "liegen: - gelegen", FURNITURE, governs="unter dat"),
    make_verb("lie in: lay", "liegen: - gelegen", CONTAINERS, ROOMS, governs="in dat"),
    make_verb("lie behind: lay", "liegen: - gelegen", FURNITURE, OPENINGS,
        governs="hinter dat"),
)  # fmt: skip
