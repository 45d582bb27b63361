"""What the frames of the phrasebook are filled with, besides the scene.

A frame is a function of `sentences` and the list of everything that its
further arguments may be: times with their tenses, matrix clauses, question words.
What such a list has several times is met as often.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from t2t_jax.data.grammar import english, existence, german_numbers, sentences
from t2t_jax.data.grammar.clauses import Anchor
from t2t_jax.data.grammar.german import Case
from t2t_jax.data.grammar.phrases import Words


class Frame(NamedTuple):
    """A sentence pattern.

    Attributes:
      name: unique.
      write: makes the sentences of a scene and one of the choices.
      choices: all its further arguments, each a tuple.
      mood: one of `nominals.MOODS`: which determiners fit.
    """

    name: str
    write: Callable[..., Words]
    choices: tuple[tuple[Any, ...], ...]
    mood: str = "told"


def _frame(
    name: str, write: Callable[..., Words], *arguments: tuple[Any, ...],
    mood: str = "told",
) -> Frame:  # fmt: skip
    return Frame(name, write, tuple(product(*arguments)), mood)


def _anchors(tense: str, times: tuple[Words, ...]) -> tuple[Anchor, ...]:
    return tuple(Anchor(tense, english, german) for english, german in times)


_NO_TIME: Words = ("", "")
_DAYS: tuple[Words, ...] = tuple(
    (f"on {english}", f"am {german}")
    for english, german in zip(
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split(),
        strict=True,
    )
)
_NOW: tuple[Words, ...] = (
    ("now", "jetzt"),
    ("today", "heute"),
    ("at the moment", "im Moment"),
    ("this week", "diese Woche"),
)
_BEFORE: tuple[Words, ...] = (
    ("yesterday", "gestern"),
    ("this morning", "heute Morgen"),
    ("last night", "gestern Abend"),
    ("last week", "letzte Woche"),
    ("last year", "letztes Jahr"),
    ("two days ago", "vor zwei Tagen"),
)
_LATER: tuple[Words, ...] = (
    ("tomorrow", "morgen"),
    ("tonight", "heute Abend"),
    ("next week", "nächste Woche"),
    ("next year", "nächstes Jahr"),
    ("in an hour", "in einer Stunde"),
    ("soon", "bald"),
)
_ALWAYS: tuple[Words, ...] = (
    ("every day", "jeden Tag"),
    ("every morning", "jeden Morgen"),
    ("at night", "in der Nacht"),
    ("in the morning", "am Morgen"),
    ("in the evening", "am Abend"),
    ("today", "heute"),
)
_OFTEN: tuple[Words, ...] = (
    ("often", "oft"),
    ("always", "immer"),
    ("never", "nie"),
    ("sometimes", "manchmal"),
)
_FREQUENT = tuple(Anchor("simple", e, g, is_inside=True) for e, g in _OFTEN)
_MODALS = (
    "can", "must", "want", "should", "have to", "would like", "wanted", "had to",
    "could",
)  # fmt: skip
_SIMPLE = 8 * _anchors("simple", (_NO_TIME,)) + _anchors("simple", _ALWAYS) + _FREQUENT
_STATE = 10 * _anchors("simple", (_NO_TIME,)) + _anchors("simple", _NOW[:2]) + _FREQUENT
_PRESENT = _anchors("progressive", _NOW)
_PAST = _anchors("past", _BEFORE + _DAYS[:3])
_FUTURE = _anchors("will", _LATER + _DAYS[3:])
_MODAL = tuple(
    anchor for tense in _MODALS[:4] for anchor in _anchors(tense, _LATER[:2])
)
_ANCHORS = _PRESENT + _PAST + _FUTURE + _MODAL
_BARE_PRESENT = 6 * _anchors("progressive", (_NO_TIME,)) + _PRESENT
_BARE_PAST = 12 * _anchors("past", (_NO_TIME,)) + 2 * _PAST[:1] + _PAST
_BARE_FUTURE = 8 * _anchors("will", (_NO_TIME,)) + 2 * _FUTURE[:1] + _FUTURE
_BARE_MODAL = (
    tuple(
        anchor
        for tense in _MODALS
        for anchor in _anchors(tense, (_NO_TIME, _NO_TIME, _NO_TIME, _NOW[1]))
    )
    + _MODAL
)
_SHORT = (
    8 * _anchors("simple", (_NO_TIME,)) + 6 * _anchors("past", (_NO_TIME,))
    + 3 * _anchors("progressive", (_NO_TIME,)) + 2 * _anchors("will", (_NO_TIME,))
    + _anchors("can", (_NO_TIME,)) + _anchors("must", (_NO_TIME,))
    + _anchors("want", (_NO_TIME,)) + _anchors("progressive", _NOW[:2])
    + _anchors("past", _BEFORE[:2]) + _anchors("will", _LATER[:2])
)  # fmt: skip
"""For what is short: mostly without a time."""
_TIMED = _PRESENT + _PAST + _FUTURE
_ASKED = (
    *3 * tuple(a for a in _SHORT if a.tense != "must"), *_TIMED,
    *3 * _anchors("can", (_NO_TIME,)), *_anchors("should", (_NO_TIME,)),
    *_anchors("have to", (_NO_TIME,)), *_anchors("would like", (_NO_TIME,)),
    *_anchors("can", _LATER[:2]), *_anchors("want", _LATER[:2]), *_FREQUENT[:2],
)  # fmt: skip
_STATES = tuple(a for a in _SHORT if a.tense in ("simple", "past")) + _anchors(
    "simple", _NOW[:2]
)
_DENIED = (
    *3 * tuple(a for a in _SHORT if a.tense != "must"), *_TIMED,
    *(
        Anchor(tense)
        for tense in ("can", "want", "could", "would like", "should", "have to")
    ),
    *_anchors("can", _LATER[:2]), *_anchors("want", _LATER[:2]),
)  # fmt: skip
_COPULA = 8 * _anchors("simple", (_NO_TIME,)) + 4 * _anchors("past", (_NO_TIME,)) + (
    *_anchors("simple", _NOW[:2]), *_anchors("past", _BEFORE[:4]), *_FREQUENT,
    *_anchors("will", (_NO_TIME, _LATER[0])), *_anchors("must", (_NO_TIME,)),
    *_anchors("can", (_NO_TIME,)), *_anchors("should", (_NO_TIME,)),
)  # fmt: skip
_PLAIN_COPULA = tuple(a for a in _COPULA if not a.is_inside and a.tense != "must")
_THERE = 6 * _anchors("simple", (_NO_TIME,)) + 3 * _anchors("past", (_NO_TIME,))
_THEN = _THERE + _anchors("simple", _NOW[1:2]) + _anchors("past", _BEFORE[:2])

TIMES = tuple(
    Anchor("", *words)
    for words in (*_NOW, *_BEFORE, *_LATER, *_ALWAYS, *_OFTEN, *_DAYS)
)
"""What says when, besides dates and hours."""

_MONTHS = tuple(
    zip(
        "January February March April May June July August September October "
        "November December".split(),
        "Januar Februar März April Mai Juni Juli August September Oktober November "
        "Dezember".split(),
        (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),
        strict=True,
    )
)
_DATES = tuple(
    Anchor(
        tense,
        f"on the {english.ordinal(day)} of {month}",
        f"am {german_numbers.ordinal(day)} {monat}",
    )
    for tense in ("past", "will")
    for month, monat, days in _MONTHS
    for day in range(1, days + 1)
)
_HOURS = tuple(
    Anchor(
        tense,
        f"{day} at {english.clock(hour, quarters)}",
        f"{tag} um {german_numbers.clock(hour, quarters)}",
    )
    for tense, (day, tag) in (("past", _BEFORE[0]), ("will", _LATER[0]))
    for hour in range(1, 13)
    for quarters in range(4)
)
_OPENINGS: tuple[Words, ...] = (
    ("I know that", "ich weiß, dass"),
    ("I think that", "ich glaube, dass"),
    ("he says that", "er sagt, dass"),
    ("we hope that", "wir hoffen, dass"),
    ("Maria says that", "Maria sagt, dass"),
    ("Peter thinks that", "Peter glaubt, dass"),
    ("it is good that", "es ist gut, dass"),
    ("I do not know whether", "ich weiß nicht, ob"),
    ("Maria asks whether", "Maria fragt, ob"),
    ("nobody knows why", "niemand weiß, warum"),
)
_REASONS: tuple[Words, ...] = tuple(
    (f"{english} {conjunction}", f"{german}, {konjunktion}")
    for english, german in (
        ("we are happy", "wir sind glücklich"),
        ("I am staying at home", "ich bleibe zu Hause"),
        ("Peter is angry", "Peter ist böse"),
        ("Maria is laughing", "Maria lacht"),
    )
    for conjunction, konjunktion in (("because", "weil"), ("although", "obwohl"))
)
_CONJUNCTIONS: tuple[Words, ...] = (("if", "wenn"), ("as soon as", "sobald"))
_CONSEQUENCES: tuple[Words, ...] = (
    ("we will stay at home", "bleiben wir zu Hause"),
    ("I will be happy", "bin ich glücklich"),
    ("Maria will laugh", "lacht Maria"),
    ("nobody will sleep", "schläft niemand"),
    ("Peter will call us", "ruft Peter uns an"),
)
_CONDITIONS = _anchors("simple", (_NO_TIME, _NO_TIME, _LATER[0], _NOW[1]))
_ACQUAINTANCES = (
    (("I know", "ich kenne"), Case.ACC, ""),
    (("Peter is talking to", "Peter spricht mit"), Case.DAT, ""),
    (("we saw", "wir haben"), Case.ACC, "gesehen"),
    (("Maria helped", "Maria hat"), Case.DAT, "geholfen"),
)
_INTENTIONS: tuple[tuple[Words, str], ...] = (
    (("forgot to", "vergessen,"), "haben"),
    (("promised to", "versprochen,"), "haben"),
    (("decided to", "beschlossen,"), "haben"),
    (("offered to", "angeboten,"), "haben"),
    (("got up early in order to", "früh aufgestanden, um"), "sein"),
    (("took a day off in order to", "einen Tag freigenommen, um"), "haben"),
)
_COST_TIMES = 3 * _anchors("simple", (_NO_TIME,)) + _anchors("simple", _NOW[:2])
_REQUEST_TIMES: tuple[Words, ...] = (
    _NO_TIME, _NO_TIME, _NO_TIME, _NOW[0], _NOW[1], *_LATER[:2],
)  # fmt: skip
_POLITE = ("{}", "{}", "{}", "please {}", "please {}", "{}, please")

SIMPLE = _frame("simple", sentences.statement, _SIMPLE)
PRESENT = _frame("present", sentences.statement, _BARE_PRESENT)
PAST = _frame("past", sentences.statement, _BARE_PAST)
FUTURE = _frame("future", sentences.statement, _BARE_FUTURE)
MODAL = _frame("modal", sentences.statement, _BARE_MODAL)
STATE = _frame("state", sentences.statement, _STATE)
FRONTED = _frame("fronted", sentences.fronted, _ANCHORS)
DATED = _frame("dated", sentences.fronted, _DATES)
CLOCKED = _frame("clocked", sentences.statement, _HOURS)
DENIAL = _frame("denial", sentences.denial, _DENIED, mood="denied")
STATE_DENIAL = _frame("state_denial", sentences.denial, _STATES, mood="denied")
LACK = _frame("lack", sentences.lack, _STATES, mood="no")
QUESTION = _frame("question", sentences.question, _ASKED, mood="asked")
STATE_QUESTION = _frame("state_question", sentences.question, _STATES, mood="asked")
WHO = _frame("who", sentences.who, _SHORT)
WHO_STATE = _frame("who_state", sentences.who, _STATES)
WHAT = _frame("what", sentences.what, _ASKED)
WHAT_STATE = _frame("what_state", sentences.what, _STATES)
WHY = _frame("why", sentences.open_question, (("why", "warum"),), _ASKED)
WHERE = _frame("where", sentences.open_question, (("where", "wo"),), _ASKED)
WHERE_STATE = _frame(
    "where_state", sentences.open_question, (("where", "wo"),), _STATES
)
WHERE_TO = _frame("where_to", sentences.open_question, (("where", "wohin"),), _ASKED)
WHERE_FROM = _frame(
    "where_from",
    sentences.open_question,
    (("where", "woher"),),
    _anchors("simple", (_NO_TIME,)),
)
WHEN = _frame(
    "when",
    sentences.open_question,
    (("when", "wann"),),
    tuple(
        Anchor(tense)
        for tense in ("simple", "past", "past", "will", "will", *_MODALS[:4])
    ),
)
WHEN_STATE = _frame(
    "when_state", sentences.open_question, (("when", "wann"), ("why", "warum")), _THERE
)
_ABLE = tuple(
    Anchor(tense) for tense in ("can", "can", "will", "want", "could", "must")
)
ABLE = _frame("able", sentences.statement, _ABLE)
ABLE_QUESTION = _frame("able_question", sentences.question, _ABLE[:5], mood="asked")
ABLE_DENIAL = _frame("able_denial", sentences.denial, _ABLE[:5], mood="denied")
WISH = _frame(
    "wish", sentences.statement, _anchors("simple", (_NO_TIME, _NO_TIME, _NOW[1]))
)
WISH_QUESTION = _frame("wish_question", sentences.question, (Anchor("simple"),))
REPORTED = _frame("reported", sentences.reported, _OPENINGS, _SHORT + _ANCHORS)
REPORTED_STATE = _frame("reported_state", sentences.reported, _OPENINGS, _STATES)
REASON = _frame(
    "reason", sentences.reported, _REASONS, _PRESENT + _PAST + _MODAL + _SHORT
)
REASON_STATE = _frame("reason_state", sentences.reported, _REASONS, _STATES)
CONDITION = _frame(
    "condition", sentences.condition, _CONJUNCTIONS, _CONSEQUENCES, _CONDITIONS
)
RELATIVE = _frame(
    "relative", sentences.relative, _ACQUAINTANCES, _PRESENT + _PAST + _SHORT
)
INFINITIVE = _frame(
    "infinitive", sentences.infinitive, _INTENTIONS, (*_BEFORE[:2], *_DAYS)
)
REQUEST = _frame("request", sentences.request, _REQUEST_TIMES)
_MARKS = (".", "!", "!")
ORDER = _frame("order", sentences.order, _POLITE, _REQUEST_TIMES, _MARKS)
BAN = _frame("ban", sentences.order, ("do not {}",), _REQUEST_TIMES, _MARKS,
             mood="denied")  # fmt: skip
ADDRESSED = _frame("addressed", sentences.addressed_question, _SHORT + _ANCHORS)
COPULA = _frame("copula", sentences.statement, _COPULA)
COPULA_QUESTION = _frame("copula_question", sentences.question, _PLAIN_COPULA)
COPULA_DENIAL = _frame("copula_denial", sentences.denial, _PLAIN_COPULA, mood="denied")
COPULA_WHAT = _frame("copula_what", sentences.what, _THERE)
COPULA_WHERE = _frame(
    "copula_where", sentences.open_question, (("where", "wo"),), _THERE
)
COPULA_WHO = _frame("copula_who", sentences.who, _PLAIN_COPULA)
IDENTITY = _frame("identity", sentences.statement, _THERE)
IDENTITY_QUESTION = _frame("identity_question", sentences.question, _THERE)
IDENTITY_DENIAL = _frame("identity_denial", sentences.denial, _THERE, mood="denied")
EXISTENCE = _frame("existence", existence.existence, ("told",), _THEN, mood="new")
EXISTENCE_QUESTION = _frame(
    "existence_question", existence.existence, ("asked",), _THEN, mood="new_asked"
)
ABSENCE = _frame("absence", existence.existence, ("no", "no", "not"), _THEN, mood="no")
PRESENCE = _frame("presence", existence.presence, ("told",), _THERE, mood="new")
PRESENCE_QUESTION = _frame(
    "presence_question", existence.presence, ("asked",), _THERE, mood="new_asked"
)
NOT_THERE = _frame(
    "not_there", existence.presence, ("no", "no", "not"), _THERE, mood="no"
)
PLACED = _frame("placed", sentences.statement, _STATES + _PAST)
PLACED_QUESTION = _frame("placed_question", sentences.question, _STATES)
PLACED_REPORTED = _frame("placed_reported", sentences.reported, _OPENINGS, _STATES)
PRICED = _frame("priced", sentences.statement, _COST_TIMES)
PRICED_QUESTION = _frame("priced_question", sentences.question, _COST_TIMES)
PRICED_REPORTED = _frame(
    "priced_reported", sentences.reported, _OPENINGS[:-1], _COST_TIMES
)
WEATHER = _frame("weather", sentences.statement, _SIMPLE + _BARE_PAST + _BARE_PRESENT)
WEATHER_QUESTION = _frame("weather_question", sentences.question, _ASKED)
