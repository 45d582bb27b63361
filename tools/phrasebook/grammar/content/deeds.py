"""The verbs of the phrasebook, each with its possible complements."""

from __future__ import annotations

from grammar.english import EnglishVerb
from grammar.lexicon import (
    ANIMALS,
    ANYBODY,
    BUILDINGS,
    CITIES,
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
    LANGUAGES,
    NEEDS,
    OPENINGS,
    PEOPLE,
    PERSONS,
    PLACES,
    READING,
    ROOMS,
    SERVINGS,
    SNACKS,
    SQUARES,
    STATIONS,
    TALK,
    THEM,
    TRANSPORT,
    VEHICLES,
    make_verb,
)

_HOT_FOOD = FOOD.only("soup", "rice", "meat", "fish")
_TEXTS = READING.only("book", "letter", "report", "novel")
_ANYTHING = f"{ANYBODY} it"
_CUPS = SERVINGS.only(
    "cup of coffee", "cup of tea", "glass of water", "glass of milk", "glass of wine",
    "bottle of beer",
)  # fmt: skip
_SOUNDS = ANIMALS.only("dog", "bird", "cat")
PRICED = (FURNITURE, CLOTHES, DEVICES)
"""Classes of what costs less than a hundred euros."""

_GOODS = (VEHICLES, *PRICED)
_GAMES = """football=keinen Fußball, tennis=kein Tennis, chess=kein Schach,
    the piano=kein Klavier, the guitar=keine Gitarre"""

_GOALS = """home=nach Hause, to school=zur Schule, to work=zur Arbeit,
    to bed=ins Bett"""
_WOULD_LIKE = EnglishVerb("would like", "", "", "would like")
HAVING = make_verb("have: had has", "haben", *_GOODS, ANIMALS, GIFTS, READING,
    CONTAINERS, TALK, NEEDS, SNACKS, FOOD, DRINKS,
    FAMILY.only("brother", "sister", "son", "daughter", "uncle", "aunt"),
    BUILDINGS.only("house"), LANDSCAPES.only("garden"), PEOPLE.only("friend", "guest"),
    is_state=True)  # fmt: skip

ACTING = (
    make_verb("buy: bought", "kaufen", *_GOODS, FOOD, SNACKS, GIFTS, ANIMALS, READING,
        BUILDINGS.only("house"), pronouns=THEM),
    make_verb("sell: sold", "verkaufen", *_GOODS, SNACKS, ANIMALS, GIFTS,
        BUILDINGS.only("house"), pronouns=THEM),
    make_verb("look for", "suchen", CLOTHES, GIFTS, READING, ANIMALS, *PERSONS,
        pronouns=ANYBODY),
    make_verb("find: found", "finden: - gefunden", CLOTHES, GIFTS, ANIMALS, READING,
        PLACES[0], pronouns=_ANYTHING),
    make_verb("lose: lost", "verlieren: - verloren", GIFTS, CLOTHES, READING,
        pronouns=THEM),
    make_verb("repair", "reparieren", VEHICLES, DEVICES, FURNITURE, pronouns=THEM),
    make_verb("use", "benutzen", DEVICES, VEHICLES, CONTAINERS,
        GIFTS.only("knife", "pen", "map", "umbrella"), pronouns=THEM),
    make_verb("build: built", "bauen", BUILDINGS, SQUARES.only("bridge", "street"),
        VEHICLES.only("boat"), FURNITURE.only("table", "shelf")),
    make_verb("carry", "tragen: träg getragen", CONTAINERS, FURNITURE, pronouns=THEM),
    make_verb("wear: wore", "tragen: träg getragen", CLOTHES),
    make_verb("take: took", "nehmen: nimm genommen", TRANSPORT, GIFTS, pronouns=THEM),
    make_verb("paint", "an|streichen: - gestrichen", FURNITURE, OPENINGS,
        CONTAINERS.only("box"), pronouns=THEM),
    make_verb("wash", "waschen: wäsch gewaschen", VEHICLES, CLOTHES,
        CONTAINERS.only("cup", "glass", "plate"), ANIMALS.only("dog", "horse"),
        pronouns=THEM),
    make_verb("clean", "putzen", OPENINGS, ROOMS, CLOTHES.only("shoe"), FURNITURE,
        pronouns=THEM),
    make_verb("eat: ate", "essen: iss gegessen", FOOD, SNACKS, phrases="=",
        pronouns=THEM),
    make_verb("drink: drank", "trinken: - getrunken", DRINKS, _CUPS, pronouns="it"),
    make_verb("cook", "kochen", _HOT_FOOD, SNACKS.only("egg", "potato"), phrases="="),
    make_verb("make: made", "machen", DRINKS.only("coffee", "tea"),
        FOOD.only("soup", "salad"), SNACKS.only("cake")),
    make_verb("order", "bestellen", FOOD, DRINKS, SNACKS, SERVINGS, pronouns=THEM),
    make_verb("bring along: brought", "mit|bringen: - gebracht", FOOD, DRINKS, GIFTS),
    make_verb("try", "probieren", FOOD, DRINKS, SNACKS, pronouns=THEM),
    make_verb("read: read", "lesen: lies gelesen", READING,
        TALK.only("story", "sentence", "word"), phrases="=", pronouns=THEM),
    make_verb("write: wrote", "schreiben: - geschrieben", _TEXTS,
        TALK.only("story", "song", "sentence", "word"), phrases="=", pronouns=THEM),
    make_verb("translate", "übersetzen", READING, TALK, pronouns=THEM),
    make_verb("learn", "lernen", TALK.only("song", "word"), phrases=LANGUAGES),
    make_verb("teach: taught", "unterrichten: - unterrichtet",
        PEOPLE.only("child", "student", "girl", "boy"), phrases=LANGUAGES,
        pronouns="me us him her them"),
    make_verb("speak: spoke", "sprechen: sprich gesprochen", phrases=LANGUAGES),
    make_verb("play", "spielen", EVENTS.only("game"), TALK.only("song"),
        phrases=f"{_GAMES}, ="),
    make_verb("sing: sang", "singen: - gesungen", TALK.only("song"), phrases="=",
        pronouns=THEM),
    make_verb("watch", "sehen: sieh gesehen", FILMS, EVENTS),
    make_verb("look at", "an|sehen: sieh gesehen", GIFTS, READING, ANIMALS, *PERSONS,
        BUILDINGS, pronouns=_ANYTHING),
    make_verb("play with", "spielen", ANIMALS,
        PEOPLE.only("child", "friend", "boy", "girl"), GIFTS.only("ball", "doll"),
        governs="mit dat", pronouns=ANYBODY),
    make_verb("dance with", "tanzen", *PERSONS, governs="mit dat", pronouns=ANYBODY),
    make_verb("throw away: threw", "weg|werfen: wirf geworfen", CLOTHES, READING),
    make_verb("put on: put", "an|ziehen: - gezogen", CLOTHES),
    make_verb("take off: took", "aus|ziehen: - gezogen", CLOTHES),
    make_verb("open", "auf|machen", OPENINGS, CONTAINERS, pronouns=THEM),
    make_verb("close", "zu|machen", OPENINGS, CONTAINERS, pronouns=THEM),
    make_verb("turn on", "ein|schalten", DEVICES),
    make_verb("turn off", "aus|schalten", DEVICES),
    make_verb("pick up", "ab|holen", *PERSONS),
    make_verb("invite", "ein|laden: läd geladen", *PERSONS, pronouns=ANYBODY),
    make_verb("visit", "besuchen", *PERSONS, *PLACES, pronouns=ANYBODY),
    make_verb("meet: met", "treffen: triff getroffen", *PERSONS, pronouns=ANYBODY),
    make_verb("call", "an|rufen: - gerufen", *PERSONS, pronouns=ANYBODY),
    make_verb("ask", "fragen", *PERSONS, pronouns=ANYBODY),
    make_verb("answer", "beantworten", TALK.only("question"), READING.only("letter"),
        pronouns="it"),
    make_verb("help", "helfen: hilf geholfen", *PERSONS, governs="dat",
        pronouns=ANYBODY),
    make_verb("thank", "danken", *PERSONS, governs="dat", pronouns=ANYBODY),
    make_verb("listen to", "zu|hören", *PERSONS, governs="dat", pronouns=ANYBODY),
    make_verb("listen to", "hören", phrases="music=keine Musik"),
    make_verb("wait for", "warten", *PERSONS, TRANSPORT, governs="auf acc",
        pronouns=ANYBODY),
    make_verb("talk to", "sprechen: sprich gesprochen", *PERSONS, governs="mit dat",
        pronouns=ANYBODY),
    make_verb("ask about", "fragen", GIFTS, *PLACES, governs="nach dat"),
    make_verb("walk to", "gehen: - ist gegangen", *PLACES, governs="zu dat"),
    make_verb("go to: went goes", "gehen: - ist gegangen", *PLACES, governs="zu dat"),
    make_verb("go: went goes", "gehen: - ist gegangen",
        phrases=_GOALS),
    make_verb("run to: ran", "laufen: läuf ist gelaufen", *PLACES, governs="zu dat"),
    make_verb("drive to: drove", "fahren: fähr ist gefahren", *PLACES,
        governs="zu dat"),
    make_verb("travel to", "reisen: - ist", governs="nach dat", phrases=CITIES),
    make_verb("fly to: flew", "fliegen: - ist geflogen", governs="nach dat",
        phrases=CITIES),
    make_verb("come back from: came", "zurück|kommen: - ist gekommen", *PLACES,
        governs="von dat"),
    make_verb("come: came", "kommen: - ist gekommen",
        phrases="home=nach Hause, =, to school=zur Schule"),
    make_verb("come to: came", "kommen: - ist gekommen", *PLACES, governs="zu dat"),
    make_verb("get on: got", "ein|steigen: - ist gestiegen", TRANSPORT,
        governs="in acc"),
    make_verb("get off: got", "aus|steigen: - ist gestiegen", TRANSPORT,
        governs="aus dat"),
    make_verb("take part in: took", "teil|nehmen: nimm genommen", EVENTS,
        governs="an dat"),
    make_verb("stay: stayed", "bleiben: - ist geblieben",
        phrases="at home=zu Hause, here=hier"),
    make_verb("wait", "warten", phrases="=, here=hier"),
)  # fmt: skip
"""What people do to things and to each other, where they go: what one may ask for."""

RESTING = (
    make_verb("sleep: slept", "schlafen: schläf geschlafen", phrases="="),
    make_verb("sit on: sat", "sitzen: - gesessen",
        FURNITURE.only("chair", "bench", "sofa", "bed", "table"), governs="auf dat"),
    make_verb("sit in: sat", "sitzen: - gesessen", ROOMS,
        LANDSCAPES.only("garden", "park", "tree"), VEHICLES.only("car"),
        governs="in dat"),
    make_verb("stand in: stood", "stehen: - gestanden", ROOMS,
        LANDSCAPES.only("garden", "forest"), BUILDINGS.only("shop", "museum", "church"),
        governs="in dat"),
    make_verb("stand in front of: stood", "stehen: - gestanden", BUILDINGS, OPENINGS,
        governs="vor dat"),
    make_verb("stand next to: stood", "stehen: - gestanden", FURNITURE, OPENINGS,
        VEHICLES, governs="neben dat"),
    make_verb("swim: swam", "schwimmen: - ist geschwommen", phrases="="),
    make_verb("run: ran", "laufen: läuf ist gelaufen", phrases="="),
    make_verb("play", "spielen", phrases="="),
    make_verb("wait", "warten", phrases="="),
)  # fmt: skip

FEELING = (
    HAVING,
    make_verb("need", "brauchen", *_GOODS, GIFTS, READING, NEEDS, FOOD, SNACKS, DRINKS,
        CONTAINERS, PEOPLE.only("doctor", "friend", "teacher"), is_state=True,
        pronouns=_ANYTHING),
    make_verb("want", "wollen", *_GOODS, GIFTS, ANIMALS, SNACKS, FOOD, DRINKS, NEEDS,
        SERVINGS, is_state=True),
    make_verb("like", "mögen", *PERSONS, ANIMALS, FOOD, SNACKS, DRINKS, READING, FILMS,
        CLOTHES, *PLACES, is_state=True, pronouns=_ANYTHING),
    make_verb("love", "lieben", *PERSONS, ANIMALS, FOOD, *PLACES[2:], FILMS,
        is_state=True, pronouns=_ANYTHING),
    make_verb("know: knew", "kennen", *PERSONS, *PLACES, READING, FILMS, TALK,
        is_state=True, pronouns=_ANYTHING),
    make_verb("see: saw", "sehen: sieh gesehen", *PERSONS, ANIMALS, VEHICLES, TRANSPORT,
        *PLACES, GIFTS, is_state=True, pronouns=_ANYTHING),
    make_verb("hear: heard", "hören", _SOUNDS, TALK.only("song", "story"), *PERSONS,
        VEHICLES, phrases="music=keine Musik", is_state=True, pronouns=_ANYTHING),
    make_verb("understand: understood", "verstehen: - verstanden", TALK, PEOPLE, FAMILY,
        READING, is_state=True, phrases=LANGUAGES, pronouns=_ANYTHING),
    make_verb("forget: forgot", "vergessen: vergiss vergessen", GIFTS, TALK,
        is_state=True, pronouns=_ANYTHING),
    make_verb("get: got", "bekommen: - bekommen", GIFTS, READING.only("letter", "book"),
        TALK.only("answer"), NEEDS, is_state=True, pronouns=THEM),
    make_verb("live in", "wohnen", BUILDINGS.only("house", "castle", "hotel"),
        LANDSCAPES.only("city", "village"), governs="in dat", phrases=CITIES,
        is_state=True),
    make_verb("come from: came", "kommen: - ist gekommen", governs="aus dat",
        phrases=CITIES, is_state=True),
)  # fmt: skip
"""States, which nobody is in the middle of and nobody can be asked to be in."""

HAPPENING = (
    *RESTING[:8],
    make_verb("think of: thought", "denken: - gedacht", *PERSONS, governs="an acc",
        pronouns=ANYBODY),
    make_verb("laugh about", "lachen", READING, CLOTHES, FILMS, governs="über acc"),
    make_verb("laugh", "lachen", phrases="="),
    make_verb("cry", "weinen", phrases="="),
    make_verb("work", "arbeiten", phrases="=, at home=zu Hause"),
    make_verb("dance", "tanzen", phrases="="),
    make_verb("travel", "reisen: - ist", phrases="="),
    make_verb("work in", "arbeiten", BUILDINGS, LANDSCAPES.only("garden", "city"),
        ROOMS.only("kitchen"), governs="in dat"),
    make_verb("get up: got", "auf|stehen: - ist gestanden", phrases="="),
    make_verb("dream of", "träumen", *PLACES, VEHICLES, governs="von dat"),
    make_verb("arrive at", "an|kommen: - ist gekommen", STATIONS, governs="an dat"),
    make_verb("arrive", "an|kommen: - ist gekommen", phrases="="),
)  # fmt: skip

GIVING = (
    make_verb("give: gave", "geben: gib gegeben", GIFTS, READING, SNACKS, FOOD, DRINKS,
        CONTAINERS, NEEDS),
    make_verb("show", "zeigen", GIFTS, CLOTHES, READING, ROOMS,
        BUILDINGS.only("house")),
    make_verb("send: sent", "schicken", GIFTS, READING, NEEDS.only("money")),
    make_verb("lend: lent", "leihen: - geliehen", GIFTS, VEHICLES, NEEDS.only("money")),
    make_verb("bring: brought", "bringen: - gebracht", GIFTS, FOOD, DRINKS, SNACKS,
        CONTAINERS, SERVINGS),
    make_verb("buy: bought", "kaufen", GIFTS, CLOTHES, SNACKS),
    make_verb("tell: told", "erzählen", TALK.only("story")),
    make_verb("write: wrote", "schreiben: - geschrieben", READING.only("letter")),
)  # fmt: skip
"""What people do with things to others, who stand in the dative."""

SENSING = tuple(
    verb
    for verb in FEELING
    if verb.name in ("see", "hear", "understand", "forget", "get", "have", "live in")
)
"""States that one can want or be able to be in."""

WISHING = (
    make_verb("would like", "möchten", *_GOODS, GIFTS, SNACKS, FOOD, DRINKS, SERVINGS,
        SERVINGS, is_state=True)._replace(english=_WOULD_LIKE),
)  # fmt: skip
BARKING = (make_verb("bark", "bellen: - gebellt", phrases="="),)
SINGING = (make_verb("sing: sang", "singen: - gesungen", phrases="="),)
FEEDING = (
    make_verb("eat: ate", "essen: iss gegessen",
        FOOD.only("meat", "bread", "fish", "fruit", "cheese"),
        SNACKS.only("apple", "egg", "potato"), phrases="="),
    make_verb("drink: drank", "trinken: - getrunken", DRINKS.only("water", "milk")),
    make_verb("see: saw", "sehen: sieh gesehen", ANIMALS, PEOPLE, is_state=True,
        pronouns=_ANYTHING),
    make_verb("like", "mögen", PEOPLE, FAMILY, ANIMALS, is_state=True,
        pronouns=_ANYTHING),
)  # fmt: skip
ANIMAL_LIFE = RESTING + FEEDING

MOVING = (
    make_verb("arrive", "an|kommen: - ist gekommen", phrases="="),
    make_verb("come: came", "kommen: - ist gekommen", phrases="="),
    make_verb("leave: left", "ab|fahren: fähr ist gefahren", phrases="="),
    make_verb("wait", "warten", phrases="="),
)  # fmt: skip

WEATHER = (
    make_verb("rain", "regnen", phrases="="),
    make_verb("snow", "schneien", phrases="="),
)

PAYING = (make_verb("pay for: paid", "bezahlen", *PRICED, governs="für acc"),)
"""What people pay for; the price stands before it."""

COSTING = make_verb("cost: cost", "kosten", is_state=True)
"""What things cost; the complement is a price."""

DOING = make_verb("do: did does", "machen")
"""What "what" asks for: "What is she doing?"."""
