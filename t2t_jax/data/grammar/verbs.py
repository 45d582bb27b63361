"""The verbs of the phrasebook, each with the classes of its complement."""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.grammar.english import EnglishVerb, english_verb
from t2t_jax.data.grammar.german_verbs import GermanVerb, german_verb
from t2t_jax.data.grammar.lexicon import (
    CLOTHES,
    DEVICES,
    DRINKS,
    EVENTS,
    FAMILY,
    FOOD,
    FURNITURE,
    GIFTS,
    OPENINGS,
    PEOPLE,
    PLACES,
    READING,
    TRANSPORT,
    VEHICLES,
    NounClass,
)


class Verb(NamedTuple):
    """A verb in both languages, and what it can be about.

    Attributes:
      english: the English verb.
      german: the German verb.
      complements: the classes of its complement.
    """

    english: EnglishVerb
    german: GermanVerb
    complements: tuple[NounClass, ...]


def _verb(
    english: str, german: str, *complements: NounClass, past: str = "",
    changed: str = "", participle: str = "", auxiliary: str = "haben",
    governs: str = "acc",
) -> Verb:  # fmt: skip
    infinitive = german_verb(
        german, changed=changed, participle=participle, auxiliary=auxiliary,
        governs=governs,
    )  # fmt: skip
    return Verb(english_verb(english, past), infinitive, complements)


_HOT_FOOD = FOOD.only("soup", "rice", "meat", "fish")
_TEXTS = READING.only("book", "letter", "report", "novel")
_STOPS = PLACES.only("station", "airport", "harbor")
_CONTAINERS = OPENINGS.only("suitcase", "box", "drawer")
_PERSONS = (PEOPLE, FAMILY)
PRICED = (FURNITURE, CLOTHES, DEVICES)
"""Classes of what costs less than a hundred euros."""

_GOODS = (VEHICLES, *PRICED)

ACTING = (
    _verb("buy", "kaufen", *_GOODS, FOOD, GIFTS, past="bought"),
    _verb("sell", "verkaufen", *_GOODS, past="sold"),
    _verb("look for", "suchen", CLOTHES, GIFTS, READING),
    _verb("repair", "reparieren", VEHICLES, DEVICES, FURNITURE),
    _verb(
        "paint", "an|streichen", FURNITURE, OPENINGS.only("door", "window", "box"),
        participle="gestrichen",
    ),
    _verb(
        "wash", "waschen", VEHICLES, CLOTHES, changed="wäsch", participle="gewaschen"
    ),
    _verb("eat", "essen", FOOD, past="ate", changed="iss", participle="gegessen"),
    _verb("drink", "trinken", DRINKS, past="drank", participle="getrunken"),
    _verb("cook", "kochen", _HOT_FOOD),
    _verb("order", "bestellen", FOOD, DRINKS),
    _verb(
        "bring along", "mit|bringen", FOOD, DRINKS, GIFTS, past="brought",
        participle="gebracht",
    ),
    _verb("try", "probieren", FOOD, DRINKS),
    _verb(
        "read", "lesen", READING, past="read", changed="lies", participle="gelesen"
    ),
    _verb("write", "schreiben", _TEXTS, past="wrote", participle="geschrieben"),
    _verb("translate", "übersetzen", READING),
    _verb(
        "throw away", "weg|werfen", CLOTHES, READING, past="threw", changed="wirf",
        participle="geworfen",
    ),
    _verb("put on", "an|ziehen", CLOTHES, past="put", participle="gezogen"),
    _verb("take off", "aus|ziehen", CLOTHES, past="took", participle="gezogen"),
    _verb("open", "auf|machen", OPENINGS),
    _verb("close", "zu|machen", OPENINGS),
    _verb("turn on", "ein|schalten", DEVICES),
    _verb("turn off", "aus|schalten", DEVICES),
    _verb("pick up", "ab|holen", *_PERSONS),
    _verb("invite", "ein|laden", *_PERSONS, changed="läd", participle="geladen"),
    _verb("visit", "besuchen", *_PERSONS, PLACES),
    _verb("call", "an|rufen", *_PERSONS, participle="gerufen"),
    _verb(
        "help", "helfen", *_PERSONS, changed="hilf", participle="geholfen",
        governs="dat",
    ),
    _verb("thank", "danken", *_PERSONS, governs="dat"),
    _verb("listen to", "zu|hören", *_PERSONS, governs="dat"),
    _verb("wait for", "warten", *_PERSONS, TRANSPORT, governs="auf acc"),
    _verb(
        "talk to", "sprechen", *_PERSONS, changed="sprich", participle="gesprochen",
        governs="mit dat",
    ),
    _verb("ask about", "fragen", GIFTS, PLACES, governs="nach dat"),
    _verb(
        "walk to", "gehen", PLACES, participle="gegangen", auxiliary="sein",
        governs="zu dat",
    ),
    _verb(
        "drive to", "fahren", PLACES, past="drove", changed="fähr",
        participle="gefahren", auxiliary="sein", governs="zu dat",
    ),
    _verb(
        "come back from", "zurück|kommen", PLACES, past="came", participle="gekommen",
        auxiliary="sein", governs="von dat",
    ),
    _verb(
        "get on", "ein|steigen", TRANSPORT, past="got", participle="gestiegen",
        auxiliary="sein", governs="in acc",
    ),
    _verb(
        "get off", "aus|steigen", TRANSPORT, past="got", participle="gestiegen",
        auxiliary="sein", governs="aus dat",
    ),
    _verb(
        "take part in", "teil|nehmen", EVENTS, past="took", changed="nimm",
        participle="genommen", governs="an dat",
    ),
)  # fmt: skip
"""What people do to things and to each other, where they go: what one may ask for."""

HAPPENING = (
    _verb(
        "think of", "denken", *_PERSONS, past="thought", participle="gedacht",
        governs="an acc",
    ),
    _verb("laugh about", "lachen", READING, CLOTHES, governs="über acc"),
    _verb("dream of", "träumen", PLACES, VEHICLES, governs="von dat"),
    _verb(
        "arrive at", "an|kommen", _STOPS, participle="gekommen", auxiliary="sein",
        governs="an dat",
    ),
)  # fmt: skip
"""What nobody would be asked for."""

DOING = ACTING + HAPPENING

GIVING = (
    _verb(
        "give", "geben", GIFTS, READING, past="gave", changed="gib",
        participle="gegeben",
    ),
    _verb("show", "zeigen", GIFTS, CLOTHES),
    _verb("send", "schicken", GIFTS, READING, past="sent"),
    _verb("lend", "leihen", GIFTS, VEHICLES, past="lent", participle="geliehen"),
)  # fmt: skip
"""What people do with things to others, who stand in the dative."""

LYING = (
    _verb(
        "lie on", "liegen", FURNITURE, past="lay", participle="gelegen",
        governs="auf dat",
    ),
    _verb(
        "lie under", "liegen", FURNITURE, past="lay", participle="gelegen",
        governs="unter dat",
    ),
    _verb(
        "lie in", "liegen", _CONTAINERS, past="lay", participle="gelegen",
        governs="in dat",
    ),
    _verb(
        "lie behind", "liegen", FURNITURE, OPENINGS, past="lay", participle="gelegen",
        governs="hinter dat",
    ),
)  # fmt: skip
"""Where things are."""

PAYING = (_verb("pay for", "bezahlen", *PRICED, past="paid", governs="für acc"),)
"""What people pay for; the price stands before it."""

COSTING = _verb("cost", "kosten", past="cost")
"""What things cost; the complement is a price."""
