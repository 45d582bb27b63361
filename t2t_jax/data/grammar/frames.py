"""What the frames of the phrasebook are filled with, besides the scene.

A frame is a function of `sentences` and the list of everything that its
further arguments may be: times with their tenses, matrix clauses, question words.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from t2t_jax.data.grammar import english, german_numbers, sentences
from t2t_jax.data.grammar.clauses import Anchor
from t2t_jax.data.grammar.german import Case
from t2t_jax.data.grammar.phrases import Words


class Frame(NamedTuple):
    """A sentence pattern.

    Attributes:
      name: unique.
      write: makes the sentences of a scene and one of the choices.
      choices: all its further arguments, each a tuple.
    """

    name: str
    write: Callable[..., Words]
    choices: tuple[tuple[Any, ...], ...]


def _frame(
    name: str, write: Callable[..., Words], *arguments: tuple[Any, ...]
) -> Frame:
    return Frame(name, write, tuple(product(*arguments)))


def _anchors(tense: str, times: tuple[Words, ...]) -> tuple[Anchor, ...]:
    return tuple(Anchor(tense, english, german) for english, german in times)


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
    ("two days ago", "vor zwei Tagen"),
)
_LATER: tuple[Words, ...] = (
    ("tomorrow", "morgen"),
    ("tonight", "heute Abend"),
    ("next week", "nächste Woche"),
    ("in an hour", "in einer Stunde"),
    ("soon", "bald"),
)
_PRESENT = _anchors("progressive", _NOW)
_PAST = _anchors("past", _BEFORE + _DAYS[:3])
_FUTURE = _anchors("will", _LATER + _DAYS[3:])
_MODAL = tuple(
    anchor
    for tense in ("can", "must", "want", "should")
    for anchor in _anchors(tense, _LATER[:2])
)
_ANCHORS = _PRESENT + _PAST + _FUTURE + _MODAL

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
_CONDITIONS = _anchors("simple", (("", ""), _LATER[0], _NOW[1]))
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
_COST_TIMES = _anchors("simple", (("", ""), _NOW[0], _NOW[1]))
_REQUEST_TIMES: tuple[Words, ...] = (("", ""), _NOW[0], _NOW[1], *_LATER[:2])

PROGRESSIVE = _frame("progressive", sentences.statement, _PRESENT)
STATEMENT = _frame("statement", sentences.statement, _PAST + _FUTURE + _MODAL)
FRONTED = _frame("fronted", sentences.fronted, _ANCHORS)
DATED = _frame("dated", sentences.fronted, _DATES)
CLOCKED = _frame("clocked", sentences.statement, _HOURS)
DENIAL = _frame("denial", sentences.denial, _PRESENT + _PAST + _FUTURE)
QUESTION = _frame("question", sentences.question, _ANCHORS)
WHY = _frame("why", sentences.open_question, (("why", "warum"),), _ANCHORS)
WHEN = _frame(
    "when",
    sentences.open_question,
    (("when", "wann"),),
    tuple(Anchor(tense) for tense in ("past", "will", "can", "must", "want", "should")),
)
REPORTED = _frame("reported", sentences.reported, _OPENINGS, _ANCHORS)
REASON = _frame("reason", sentences.reported, _REASONS, _PRESENT + _PAST + _MODAL)
CONDITION = _frame(
    "condition", sentences.condition, _CONJUNCTIONS, _CONSEQUENCES, _CONDITIONS
)
RELATIVE = _frame("relative", sentences.relative, _ACQUAINTANCES, _PRESENT + _PAST)
INFINITIVE = _frame(
    "infinitive", sentences.infinitive, _INTENTIONS, (*_BEFORE[:2], *_DAYS)
)
REQUEST = _frame("request", sentences.request, _REQUEST_TIMES)
ADDRESSED_NOW = _frame("addressed_now", sentences.addressed_question, _PRESENT)
ADDRESSED = _frame("addressed", sentences.addressed_question, _PAST + _FUTURE + _MODAL)
PLACED = _frame("placed", sentences.statement, _PRESENT + _PAST)
PLACED_FRONTED = _frame("placed_fronted", sentences.fronted, _PRESENT + _PAST)
PLACED_QUESTION = _frame("placed_question", sentences.question, _PRESENT + _PAST)
PLACED_REPORTED = _frame(
    "placed_reported", sentences.reported, _OPENINGS, _PRESENT + _PAST
)
PRICED = _frame("priced", sentences.statement, _COST_TIMES)
PRICED_QUESTION = _frame("priced_question", sentences.question, _COST_TIMES)
PRICED_REPORTED = _frame(
    "priced_reported", sentences.reported, _OPENINGS[:-1], _COST_TIMES
)
