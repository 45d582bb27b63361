"""Arguments of the phrasebook's frames, besides the scene.

A frame is a function of `sentences` and the list of its possible further arguments:
times with their tenses, matrix clauses, question words. Repeated entries of a list are
more frequent.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from grammar import sentences
from grammar.clauses import Anchor
from grammar.content import times
from grammar.german import Case
from grammar.phrases import Words


class Frame(NamedTuple):
    """A sentence pattern.

    Attributes:
      write: makes the sentences of a scene and one of the choices.
      choices: all its further arguments, each a tuple.
      mood: one of `MOODS`: which determiners fit.
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
_CONDITIONS = times.anchors(
    "simple", (times.NO_TIME, times.NO_TIME, times.LATER[0], times.NOW[1])
)
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
_COST_TIMES = 3 * times.anchors("simple", (times.NO_TIME,)) + times.anchors(
    "simple", times.NOW[:2]
)
_REQUEST_TIMES: tuple[Words, ...] = (
    *3 * (times.NO_TIME,), *times.NOW[:2], *times.LATER[:2],
)  # fmt: skip
_POLITE = ("{}", "{}", "{}", "please {}", "please {}", "{}, please")

SIMPLE = _frame("simple", sentences.statement, times.SIMPLE)
PRESENT = _frame("present", sentences.statement, times.BARE_PRESENT)
PAST = _frame("past", sentences.statement, times.BARE_PAST)
FUTURE = _frame("future", sentences.statement, times.BARE_FUTURE)
MODAL = _frame("modal", sentences.statement, times.BARE_MODAL)
STATE = _frame("state", sentences.statement, times.STATE)
FRONTED = _frame("fronted", sentences.fronted, times.ANCHORS)
DATED = _frame("dated", sentences.fronted, times.DATES)
CLOCKED = _frame("clocked", sentences.statement, times.HOURS)
DENIAL = _frame("denial", sentences.denial, times.DENIED, mood="denied")
STATE_DENIAL = _frame("state_denial", sentences.denial, times.STATES, mood="denied")
LACK = _frame("lack", sentences.lack, times.STATES, mood="no")
QUESTION = _frame("question", sentences.question, times.ASKED, mood="asked")
STATE_QUESTION = _frame(
    "state_question", sentences.question, times.STATES, mood="asked"
)
WHO = _frame("who", sentences.who, times.SHORT)
WHO_STATE = _frame("who_state", sentences.who, times.STATES)
WHAT = _frame("what", sentences.what, times.ASKED)
WHAT_STATE = _frame("what_state", sentences.what, times.STATES)
WHY = _frame("why", sentences.open_question, (("why", "warum"),), times.ASKED)
WHERE = _frame("where", sentences.open_question, (("where", "wo"),), times.ASKED)
WHERE_STATE = _frame(
    "where_state", sentences.open_question, (("where", "wo"),), times.STATES
)
WHERE_TO = _frame(
    "where_to", sentences.open_question, (("where", "wohin"),), times.ASKED
)
WHERE_FROM = _frame(
    "where_from",
    sentences.open_question,
    (("where", "woher"),),
    times.anchors("simple", (times.NO_TIME,)),
)
WHEN = _frame(
    "when",
    sentences.open_question,
    (("when", "wann"),),
    tuple(
        Anchor(tense)
        for tense in ("simple", "past", "past", "will", "will", *times.MODALS[:4])
    ),
)
_ABLE = tuple(
    Anchor(tense) for tense in ("can", "can", "will", "want", "could", "must")
)
ABLE = _frame("able", sentences.statement, _ABLE)
ABLE_QUESTION = _frame("able_question", sentences.question, _ABLE[:5], mood="asked")
ABLE_DENIAL = _frame("able_denial", sentences.denial, _ABLE[:5], mood="denied")
WISH = _frame(
    "wish",
    sentences.statement,
    times.anchors("simple", (times.NO_TIME, times.NO_TIME, times.NOW[1])),
)
WISH_QUESTION = _frame("wish_question", sentences.question, (Anchor("simple"),))
REPORTED = _frame(
    "reported", sentences.reported, _OPENINGS, times.SHORT + times.ANCHORS
)
REPORTED_STATE = _frame("reported_state", sentences.reported, _OPENINGS, times.STATES)
REASON = _frame(
    "reason",
    sentences.reported,
    _REASONS,
    times.PRESENT + times.PAST + times.MODAL + times.SHORT,
)
REASON_STATE = _frame("reason_state", sentences.reported, _REASONS, times.STATES)
CONDITION = _frame(
    "condition", sentences.condition, _CONJUNCTIONS, _CONSEQUENCES, _CONDITIONS
)
RELATIVE = _frame(
    "relative",
    sentences.relative,
    _ACQUAINTANCES,
    times.PRESENT + times.PAST + times.SHORT,
)
INFINITIVE = _frame(
    "infinitive", sentences.infinitive, _INTENTIONS, (*times.BEFORE[:2], *times.DAYS)
)
REQUEST = _frame("request", sentences.request, _REQUEST_TIMES)
_MARKS = (".", "!", "!")
ORDER = _frame("order", sentences.order, _POLITE, _REQUEST_TIMES, _MARKS)
BAN = _frame("ban", sentences.order, ("do not {}",), _REQUEST_TIMES, _MARKS,
             mood="denied")  # fmt: skip
ADDRESSED = _frame(
    "addressed", sentences.addressed_question, times.SHORT + times.ANCHORS
)
COPULA = _frame("copula", sentences.statement, times.COPULA)
COPULA_QUESTION = _frame("copula_question", sentences.question, times.PLAIN_COPULA)
COPULA_DENIAL = _frame(
    "copula_denial", sentences.denial, times.PLAIN_COPULA, mood="denied"
)
COPULA_WHAT = _frame("copula_what", sentences.what, times.THERE)
COPULA_WHERE = _frame(
    "copula_where", sentences.open_question, (("where", "wo"),), times.THERE
)
COPULA_WHO = _frame("copula_who", sentences.who, times.PLAIN_COPULA)
IDENTITY = _frame("identity", sentences.statement, times.THERE)
IDENTITY_QUESTION = _frame("identity_question", sentences.question, times.THERE)
IDENTITY_DENIAL = _frame(
    "identity_denial", sentences.denial, times.THERE, mood="denied"
)
EXISTENCE = _frame("existence", sentences.existence, ("told",), times.THEN, mood="new")
EXISTENCE_QUESTION = _frame(
    "existence_question", sentences.existence, ("asked",), times.THEN, mood="new_asked"
)
ABSENCE = _frame(
    "absence", sentences.existence, ("no", "no", "not"), times.THEN, mood="no"
)
PRESENCE = _frame("presence", sentences.presence, ("told",), times.THERE, mood="new")
PRESENCE_QUESTION = _frame(
    "presence_question", sentences.presence, ("asked",), times.THERE, mood="new_asked"
)
NOT_THERE = _frame(
    "not_there", sentences.presence, ("no", "no", "not"), times.THERE, mood="no"
)
PLACED = _frame("placed", sentences.statement, times.STATES + times.PAST)
PLACED_QUESTION = _frame("placed_question", sentences.question, times.STATES)
PLACED_REPORTED = _frame("placed_reported", sentences.reported, _OPENINGS, times.STATES)
PRICED = _frame("priced", sentences.statement, _COST_TIMES)
PRICED_QUESTION = _frame("priced_question", sentences.question, _COST_TIMES)
PRICED_REPORTED = _frame(
    "priced_reported", sentences.reported, _OPENINGS[:-1], _COST_TIMES
)
WEATHER = _frame(
    "weather", sentences.statement, times.SIMPLE + times.BARE_PAST + times.BARE_PRESENT
)
WEATHER_QUESTION = _frame("weather_question", sentences.question, times.ASKED)
