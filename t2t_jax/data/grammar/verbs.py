"""The verbs of the phrasebook, each with the classes of its complement."""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.grammar.english import EnglishVerb, english_verb
from t2t_jax.data.grammar.german_verbs import GermanVerb, german_verb
from t2t_jax.data.grammar.lexicon import (
    ANIMALS,
    BUILDINGS,
    CLOTHES,
    CONTAINERS,
    DEVICES,
    DRINKS,
    EVENTS,
    FAMILY,
    FILMS,
    FOOD,
    FURNITURE,
    GIFTS,
    LANDSCAPES,
    NEEDS,
    OPENINGS,
    PARENTS,
    PEOPLE,
    PLACES,
    READING,
    ROOMS,
    SERVINGS,
    SNACKS,
    SQUARES,
    STATIONS,
    TALK,
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
      phrases: complements that are not of a class, as (English, German): "at home";
        the German of what is denied by it begins with "kein": "keine Musik".
      pronouns: which pronouns it takes: "me him it", or "".
      is_state: whether it has neither a progressive nor an imperative: "know".
    """

    english: EnglishVerb
    german: GermanVerb
    complements: tuple[NounClass, ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    pronouns: str = ""
    is_state: bool = False

    @property
    def name(self) -> str:
        """The English verb with its particle: "look for"."""
        return f"{self.english.base} {self.english.particle}".rstrip()


def _verb(
    english: str, german: str, *complements: NounClass, past: str = "",
    changed: str = "", participle: str = "", auxiliary: str = "haben",
    governs: str = "acc", third: str = "", phrases: str = "", pronouns: str = "",
    is_state: bool = False,
) -> Verb:  # fmt: skip
    infinitive = german_verb(
        german, changed=changed, participle=participle, auxiliary=auxiliary,
        governs=governs,
    )  # fmt: skip
    pairs = (entry.strip().split("=") for entry in phrases.split(",") if entry)
    fixed = tuple((there, here) for there, here in pairs)
    verb = english_verb(english, past, third)
    return Verb(verb, infinitive, complements, fixed, pronouns, is_state)


_HOT_FOOD = FOOD.only("soup", "rice", "meat", "fish")
_TEXTS = READING.only("book", "letter", "report", "novel")
_STOPS = STATIONS
_PERSONS = (PEOPLE, FAMILY, PARENTS)
_ANYBODY = "me you him her us them"
_ANYTHING = f"{_ANYBODY} it"
_IT = "it them"
_CUPS = SERVINGS.only(
    "cup of coffee", "cup of tea", "glass of water", "glass of milk", "glass of wine",
    "bottle of beer",
)  # fmt: skip
_SOUNDS = ANIMALS.only("dog", "bird", "cat")
PRICED = (FURNITURE, CLOTHES, DEVICES)
"""Classes of what costs less than a hundred euros."""

_GOODS = (VEHICLES, *PRICED)
_LANGUAGES = """German=kein Deutsch, English=kein Englisch, French=kein Französisch,
    Spanish=kein Spanisch"""
_CITIES = "Berlin=Berlin, Hamburg=Hamburg, London=London, Paris=Paris, Vienna=Wien"
_GAMES = """football=keinen Fußball, tennis=kein Tennis, chess=kein Schach,
    the piano=kein Klavier, the guitar=keine Gitarre"""
_GOING = {"past": "went", "third": "goes", "participle": "gegangen"}
_GOING |= {"auxiliary": "sein"}

HAVING = _verb(
    "have", "haben", *_GOODS, ANIMALS, GIFTS, READING, CONTAINERS, TALK, NEEDS, SNACKS,
    FOOD, DRINKS, FAMILY.only("brother", "sister", "son", "daughter", "uncle", "aunt"),
    BUILDINGS.only("house"), LANDSCAPES.only("garden"), PEOPLE.only("friend", "guest"),
    past="had", third="has", is_state=True,
)  # fmt: skip

ACTING = (
    _verb("buy", "kaufen", *_GOODS, FOOD, SNACKS, GIFTS, ANIMALS, READING,
          BUILDINGS.only("house"), past="bought", pronouns=_IT),
    _verb("sell", "verkaufen", *_GOODS, SNACKS, ANIMALS, GIFTS,
          BUILDINGS.only("house"), past="sold", pronouns=_IT),
    _verb("look for", "suchen", CLOTHES, GIFTS, READING, ANIMALS, *_PERSONS,
          pronouns=_ANYBODY),
    _verb("find", "finden", CLOTHES, GIFTS, ANIMALS, READING, PLACES[0],
          past="found", participle="gefunden", pronouns=_ANYTHING),
    _verb("lose", "verlieren", GIFTS, CLOTHES, READING, past="lost",
          participle="verloren", pronouns=_IT),
    _verb("repair", "reparieren", VEHICLES, DEVICES, FURNITURE, pronouns=_IT),
    _verb("use", "benutzen", DEVICES, VEHICLES, CONTAINERS, GIFTS.only("knife", "pen",
          "map", "umbrella"), pronouns=_IT),
    _verb("build", "bauen", BUILDINGS, SQUARES.only("bridge", "street"),
          VEHICLES.only("boat"), FURNITURE.only("table", "shelf"), past="built"),
    _verb("carry", "tragen", CONTAINERS, FURNITURE, changed="träg",
          participle="getragen", pronouns=_IT),
    _verb("wear", "tragen", CLOTHES, past="wore", changed="träg",
          participle="getragen"),
    _verb("take", "nehmen", TRANSPORT, GIFTS, past="took", changed="nimm",
          participle="genommen", pronouns=_IT),
    _verb("paint", "an|streichen", FURNITURE, OPENINGS, CONTAINERS.only("box"),
          participle="gestrichen", pronouns=_IT),
    _verb("wash", "waschen", VEHICLES, CLOTHES, CONTAINERS.only("cup", "glass",
          "plate"), ANIMALS.only("dog", "horse"), changed="wäsch",
          participle="gewaschen", pronouns=_IT),
    _verb("clean", "putzen", OPENINGS, ROOMS, CLOTHES.only("shoe"), FURNITURE,
          pronouns=_IT),
    _verb("eat", "essen", FOOD, SNACKS, past="ate", changed="iss",
          participle="gegessen", phrases="=", pronouns=_IT),
    _verb("drink", "trinken", DRINKS, _CUPS, past="drank",
          participle="getrunken", pronouns="it"),
    _verb("cook", "kochen", _HOT_FOOD, SNACKS.only("egg", "potato"), phrases="="),
    _verb("make", "machen", DRINKS.only("coffee", "tea"), FOOD.only("soup", "salad"),
          SNACKS.only("cake"), past="made"),
    _verb("order", "bestellen", FOOD, DRINKS, SNACKS, SERVINGS, pronouns=_IT),
    _verb("bring along", "mit|bringen", FOOD, DRINKS, GIFTS, past="brought",
          participle="gebracht"),
    _verb("try", "probieren", FOOD, DRINKS, SNACKS, pronouns=_IT),
    _verb("read", "lesen", READING, TALK.only("story", "sentence", "word"),
          past="read", changed="lies", participle="gelesen", phrases="=",
          pronouns=_IT),
    _verb("write", "schreiben", _TEXTS, TALK.only("story", "song", "sentence",
          "word"), past="wrote", participle="geschrieben", phrases="=", pronouns=_IT),
    _verb("translate", "übersetzen", READING, TALK, pronouns=_IT),
    _verb("learn", "lernen", TALK.only("song", "word"), phrases=_LANGUAGES),
    _verb("teach", "unterrichten", PEOPLE.only("child", "student", "girl", "boy"),
          past="taught", phrases=_LANGUAGES, pronouns="me us him her them"),
    _verb("speak", "sprechen", past="spoke", changed="sprich",
          participle="gesprochen", phrases=_LANGUAGES),
    _verb("play", "spielen", EVENTS.only("game"), TALK.only("song"),
          phrases=f"{_GAMES}, ="),
    _verb("sing", "singen", TALK.only("song"), past="sang", participle="gesungen",
          phrases="=", pronouns=_IT),
    _verb("watch", "sehen", FILMS, EVENTS, changed="sieh", participle="gesehen"),
    _verb("throw away", "weg|werfen", CLOTHES, READING, past="threw", changed="wirf",
          participle="geworfen"),
    _verb("put on", "an|ziehen", CLOTHES, past="put", participle="gezogen"),
    _verb("take off", "aus|ziehen", CLOTHES, past="took", participle="gezogen"),
    _verb("open", "auf|machen", OPENINGS, CONTAINERS, pronouns=_IT),
    _verb("close", "zu|machen", OPENINGS, CONTAINERS, pronouns=_IT),
    _verb("turn on", "ein|schalten", DEVICES),
    _verb("turn off", "aus|schalten", DEVICES),
    _verb("pick up", "ab|holen", *_PERSONS),
    _verb("invite", "ein|laden", *_PERSONS, changed="läd", participle="geladen",
          pronouns=_ANYBODY),
    _verb("visit", "besuchen", *_PERSONS, *PLACES, pronouns=_ANYBODY),
    _verb("meet", "treffen", *_PERSONS, past="met", changed="triff",
          participle="getroffen", pronouns=_ANYBODY),
    _verb("call", "an|rufen", *_PERSONS, participle="gerufen", pronouns=_ANYBODY),
    _verb("ask", "fragen", *_PERSONS, pronouns=_ANYBODY),
    _verb("answer", "beantworten", TALK.only("question"),
          READING.only("letter"), pronouns="it"),
    _verb("help", "helfen", *_PERSONS, changed="hilf", participle="geholfen",
          governs="dat", pronouns=_ANYBODY),
    _verb("thank", "danken", *_PERSONS, governs="dat", pronouns=_ANYBODY),
    _verb("listen to", "zu|hören", *_PERSONS, governs="dat", pronouns=_ANYBODY),
    _verb("listen to", "hören", phrases="music=keine Musik"),
    _verb("wait for", "warten", *_PERSONS, TRANSPORT, governs="auf acc",
          pronouns=_ANYBODY),
    _verb("talk to", "sprechen", *_PERSONS, changed="sprich",
          participle="gesprochen", governs="mit dat", pronouns=_ANYBODY),
    _verb("ask about", "fragen", GIFTS, *PLACES, governs="nach dat"),
    _verb("walk to", "gehen", *PLACES, participle="gegangen", auxiliary="sein",
          governs="zu dat"),
    _verb("go to", "gehen", *PLACES, governs="zu dat", **_GOING),
    _verb("go", "gehen", **_GOING, phrases="""home=nach Hause, to school=zur Schule,
          to work=zur Arbeit, to bed=ins Bett"""),
    _verb("drive to", "fahren", *PLACES, past="drove", changed="fähr",
          participle="gefahren", auxiliary="sein", governs="zu dat"),
    _verb("travel to", "reisen", auxiliary="sein", governs="nach dat",
          phrases=_CITIES),
    _verb("fly to", "fliegen", past="flew", auxiliary="sein", governs="nach dat",
          participle="geflogen", phrases=_CITIES),
    _verb("come back from", "zurück|kommen", *PLACES, past="came",
          participle="gekommen", auxiliary="sein", governs="von dat"),
    _verb("come", "kommen", past="came", participle="gekommen", auxiliary="sein",
          phrases="home=nach Hause, =, to school=zur Schule"),
    _verb("get on", "ein|steigen", TRANSPORT, past="got", participle="gestiegen",
          auxiliary="sein", governs="in acc"),
    _verb("get off", "aus|steigen", TRANSPORT, past="got", participle="gestiegen",
          auxiliary="sein", governs="aus dat"),
    _verb("take part in", "teil|nehmen", EVENTS, past="took", changed="nimm",
          participle="genommen", governs="an dat"),
    _verb("stay", "bleiben", past="stayed", participle="geblieben",
          auxiliary="sein", phrases="at home=zu Hause, here=hier"),
    _verb("wait", "warten", phrases="=, here=hier"),
)  # fmt: skip
"""What people do to things and to each other, where they go: what one may ask for."""

RESTING = (
    _verb("sleep", "schlafen", past="slept", changed="schläf", participle="geschlafen",
          phrases="="),
    _verb("sit on", "sitzen", FURNITURE.only("chair", "bench", "sofa", "bed", "table"),
          past="sat", participle="gesessen", governs="auf dat"),
    _verb("swim", "schwimmen", past="swam", participle="geschwommen",
          auxiliary="sein", phrases="="),
    _verb("run", "laufen", past="ran", changed="läuf", participle="gelaufen",
          auxiliary="sein", phrases="="),
    _verb("play", "spielen", phrases="="),
    _verb("wait", "warten", phrases="="),
)  # fmt: skip
"""What animals do too."""

FEELING = (
    HAVING,
    _verb("need", "brauchen", *_GOODS, GIFTS, READING, NEEDS, FOOD, SNACKS, DRINKS,
          CONTAINERS, PEOPLE.only("doctor", "friend", "teacher"), is_state=True,
          pronouns=_ANYTHING),
    _verb("want", "wollen", *_GOODS, GIFTS, ANIMALS, SNACKS, FOOD, DRINKS, NEEDS,
          SERVINGS, is_state=True),
    _verb("like", "mögen", *_PERSONS, ANIMALS, FOOD, SNACKS, DRINKS, READING, FILMS,
          CLOTHES, *PLACES, is_state=True, pronouns=_ANYTHING),
    _verb("love", "lieben", *_PERSONS, ANIMALS, FOOD, *PLACES[2:], FILMS,
          is_state=True, pronouns=_ANYTHING),
    _verb("know", "kennen", *_PERSONS, *PLACES, READING, FILMS, TALK, past="knew",
          is_state=True, pronouns=_ANYTHING),
    _verb("see", "sehen", *_PERSONS, ANIMALS, VEHICLES, TRANSPORT, *PLACES, GIFTS,
          past="saw", changed="sieh", participle="gesehen", is_state=True,
          pronouns=_ANYTHING),
    _verb("hear", "hören", _SOUNDS, TALK.only("song", "story"), *_PERSONS,
          VEHICLES, past="heard", phrases="music=keine Musik", is_state=True,
          pronouns=_ANYTHING),
    _verb("understand", "verstehen", TALK, PEOPLE, FAMILY, READING,
          past="understood", participle="verstanden", is_state=True,
          phrases=_LANGUAGES, pronouns=_ANYTHING),
    _verb("forget", "vergessen", GIFTS, TALK, past="forgot", changed="vergiss",
          participle="vergessen", is_state=True, pronouns=_ANYTHING),
    _verb("get", "bekommen", GIFTS, READING.only("letter", "book"),
          TALK.only("answer"), NEEDS, past="got", participle="bekommen",
          is_state=True, pronouns=_IT),
    _verb("live in", "wohnen", BUILDINGS.only("house", "castle", "hotel"),
          LANDSCAPES.only("city", "village"), governs="in dat", phrases=_CITIES,
          is_state=True),
    _verb("come from", "kommen", past="came", participle="gekommen",
          auxiliary="sein", governs="aus dat", phrases=_CITIES, is_state=True),
)  # fmt: skip
"""States, which nobody is in the middle of and nobody can be asked to be in."""

HAPPENING = (
    *RESTING[:4],
    _verb("think of", "denken", *_PERSONS, past="thought", participle="gedacht",
          governs="an acc", pronouns=_ANYBODY),
    _verb("laugh about", "lachen", READING, CLOTHES, FILMS, governs="über acc"),
    _verb("laugh", "lachen", phrases="="),
    _verb("cry", "weinen", phrases="="),
    _verb("work", "arbeiten", phrases="=, at home=zu Hause"),
    _verb("dance", "tanzen", phrases="="),
    _verb("travel", "reisen", auxiliary="sein", phrases="="),
    _verb("work in", "arbeiten", BUILDINGS, LANDSCAPES.only("garden", "city"),
          ROOMS.only("kitchen"), governs="in dat"),
    _verb("get up", "auf|stehen", past="got", participle="gestanden",
          auxiliary="sein", phrases="="),
    _verb("dream of", "träumen", *PLACES, VEHICLES, governs="von dat"),
    _verb("arrive at", "an|kommen", _STOPS, participle="gekommen", auxiliary="sein",
          governs="an dat"),
    _verb("arrive", "an|kommen", participle="gekommen", auxiliary="sein", phrases="="),
)  # fmt: skip
"""What nobody would be asked for."""

GIVING = (
    _verb("give", "geben", GIFTS, READING, SNACKS, FOOD, DRINKS, CONTAINERS, NEEDS,
          past="gave", changed="gib", participle="gegeben"),
    _verb("show", "zeigen", GIFTS, CLOTHES, READING, ROOMS, BUILDINGS.only("house")),
    _verb("send", "schicken", GIFTS, READING, NEEDS.only("money"), past="sent"),
    _verb("lend", "leihen", GIFTS, VEHICLES, NEEDS.only("money"), past="lent",
          participle="geliehen"),
    _verb("bring", "bringen", GIFTS, FOOD, DRINKS, SNACKS, CONTAINERS, SERVINGS,
          past="brought", participle="gebracht"),
    _verb("buy", "kaufen", GIFTS, CLOTHES, SNACKS, past="bought"),
    _verb("tell", "erzählen", TALK.only("story"), past="told"),
    _verb("write", "schreiben", READING.only("letter"), past="wrote",
          participle="geschrieben"),
)  # fmt: skip
"""What people do with things to others, who stand in the dative."""

SENSING = tuple(
    verb
    for verb in FEELING
    if verb.name in ("see", "hear", "understand", "forget", "get", "have", "live in")
)
"""States that one can want or be able to be in."""

WISHING = (
    _verb("would like", "möchten", *_GOODS, GIFTS, SNACKS, FOOD, DRINKS, SERVINGS,
          SERVINGS, is_state=True)._replace(
        english=english_verb("like")._replace(base="would like")
    ),
)  # fmt: skip
BARKING = (_verb("bark", "bellen", participle="gebellt", phrases="="),)
SINGING = (_verb("sing", "singen", past="sang", participle="gesungen", phrases="="),)
FEEDING = (
    _verb("eat", "essen", FOOD.only("meat", "bread", "fish", "fruit", "cheese"),
          SNACKS.only("apple", "egg", "potato"), past="ate", changed="iss",
          participle="gegessen", phrases="="),
    _verb("drink", "trinken", DRINKS.only("water", "milk"), past="drank",
          participle="getrunken"),
    _verb("see", "sehen", ANIMALS, PEOPLE, past="saw", changed="sieh",
          participle="gesehen", is_state=True, pronouns=_ANYTHING),
    _verb("like", "mögen", PEOPLE, FAMILY, ANIMALS, is_state=True,
          pronouns=_ANYTHING),
)  # fmt: skip
ANIMAL_LIFE = RESTING + FEEDING
"""What animals do."""

MOVING = (
    _verb("arrive", "an|kommen", participle="gekommen", auxiliary="sein", phrases="="),
    _verb("come", "kommen", past="came", participle="gekommen", auxiliary="sein",
          phrases="="),
    _verb("leave", "ab|fahren", past="left", changed="fähr", participle="gefahren",
          auxiliary="sein", phrases="="),
    _verb("wait", "warten", phrases="="),
)  # fmt: skip
"""What buses and trains do."""

WEATHER = (
    _verb("rain", "regnen", phrases="="),
    _verb("snow", "schneien", phrases="="),
)
"""What "it" does."""

BE = _verb("be", "sein", past="was", third="is", governs="nom", is_state=True)
"""The copula."""


def _being(where: str, german: str, *complements: NounClass, phrases: str = "") -> Verb:
    return BE._replace(
        english=BE.english._replace(particle=where),
        german=german_verb("sein", governs=f"{german} dat"),
        complements=complements,
        phrases=_verb("be", "sein", phrases=phrases).phrases,
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
"""Where there may be a building."""

BEING_AT = BE._replace(
    phrases=(("at home", "zu Hause"), ("here", "hier"), ("at school", "in der Schule"))
)
BEING_IN_CITY = _being("in", "in", phrases=_CITIES)
WHEREABOUTS = (
    _verb("live", "wohnen", phrases="=", is_state=True),
    _verb("work", "arbeiten", phrases="="),
    _verb("sleep", "schlafen", past="slept", changed="schläf", participle="geschlafen",
          phrases="="),
    _verb("swim", "schwimmen", past="swam", participle="geschwommen",
          auxiliary="sein", phrases="="),
    _verb("play", "spielen", phrases="=, football=keinen Fußball"),
    _verb("wait", "warten", phrases="="),
    _verb("eat", "essen", past="ate", changed="iss", participle="gegessen",
          phrases="="),
    _verb("learn", "lernen", phrases=_LANGUAGES),
    _verb("buy", "kaufen", FOOD, DRINKS, CLOTHES, past="bought"),
    _verb("meet", "treffen", PEOPLE, past="met", changed="triff",
          participle="getroffen", pronouns=_ANYBODY),
    _verb("find", "finden", GIFTS, ANIMALS, past="found", participle="gefunden",
          pronouns=_IT),
)  # fmt: skip
"""What "where" asks about."""

WAYS = (
    _verb("go", "gehen", **_GOING, phrases="="),
    _verb("travel", "reisen", auxiliary="sein", phrases="="),
    _verb("fly", "fliegen", past="flew", auxiliary="sein", participle="geflogen",
          phrases="="),
    _verb("drive", "fahren", past="drove", changed="fähr", participle="gefahren",
          auxiliary="sein", phrases="="),
)  # fmt: skip
"""What "where" asks the way of."""

COMING = _verb(
    "come from", "kommen", past="came", participle="gekommen", auxiliary="sein",
    governs="aus dat", phrases="=", is_state=True,
)  # fmt: skip

LYING = (
    _verb("lie on", "liegen", FURNITURE, past="lay", participle="gelegen",
          governs="auf dat"),
    _verb("lie under", "liegen", FURNITURE, past="lay", participle="gelegen",
          governs="unter dat"),
    _verb("lie in", "liegen", CONTAINERS, ROOMS, past="lay", participle="gelegen",
          governs="in dat"),
    _verb("lie behind", "liegen", FURNITURE, OPENINGS, past="lay",
          participle="gelegen", governs="hinter dat"),
)  # fmt: skip
"""Where things are."""

PAYING = (_verb("pay for", "bezahlen", *PRICED, past="paid", governs="für acc"),)
"""What people pay for; the price stands before it."""

COSTING = _verb("cost", "kosten", past="cost", is_state=True)
"""What things cost; the complement is a price."""

DOING = _verb("do", "machen", past="did", third="does")
"""What "what" asks for: "What is she doing?"."""
