"""Tenses and times of the phrasebook, and their frequencies.

Repeated entries of a list are more frequent: most sentences have no time.
"""

from __future__ import annotations

from grammar import english, german
from grammar.clauses import Anchor
from grammar.phrases import Words


def anchors(tense: str, times: tuple[Words, ...]) -> tuple[Anchor, ...]:
    """Makes anchors of a tense."""
    return tuple(Anchor(tense, english, german) for english, german in times)


NO_TIME: Words = ("", "")
DAYS: tuple[Words, ...] = tuple(
    (f"on {english}", f"am {german}")
    for english, german in zip(
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split(),
        strict=True,
    )
)
NOW: tuple[Words, ...] = (
    ("now", "jetzt"),
    ("today", "heute"),
    ("at the moment", "im Moment"),
    ("this week", "diese Woche"),
)
BEFORE: tuple[Words, ...] = (
    ("yesterday", "gestern"),
    ("this morning", "heute Morgen"),
    ("last night", "gestern Abend"),
    ("last week", "letzte Woche"),
    ("last year", "letztes Jahr"),
    ("two days ago", "vor zwei Tagen"),
)
LATER: tuple[Words, ...] = (
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
    *DAYS[5:],
)
_OFTEN: tuple[Words, ...] = (
    ("often", "oft"),
    ("always", "immer"),
    ("never", "nie"),
    ("sometimes", "manchmal"),
)
_FREQUENT = tuple(Anchor("simple", e, g, is_inside=True) for e, g in _OFTEN)
MODALS = (
    "can", "must", "want", "should", "have to", "would like", "wanted", "had to",
    "could",
)  # fmt: skip
SIMPLE = 8 * anchors("simple", (NO_TIME,)) + anchors("simple", _ALWAYS) + _FREQUENT
STATE = 10 * anchors("simple", (NO_TIME,)) + anchors("simple", NOW[:2]) + _FREQUENT
PRESENT = anchors("progressive", NOW)
PAST = anchors("past", BEFORE + DAYS[:3])
_FUTURE = anchors("will", LATER + DAYS[3:])
MODAL = tuple(anchor for tense in MODALS[:4] for anchor in anchors(tense, LATER[:2]))
ANCHORS = PRESENT + PAST + _FUTURE + MODAL
BARE_PRESENT = 6 * anchors("progressive", (NO_TIME,)) + PRESENT
BARE_PAST = 12 * anchors("past", (NO_TIME,)) + 2 * PAST[:1] + PAST
BARE_FUTURE = 8 * anchors("will", (NO_TIME,)) + 2 * _FUTURE[:1] + _FUTURE
BARE_MODAL = (
    tuple(
        anchor
        for tense in MODALS
        for anchor in anchors(tense, (NO_TIME, NO_TIME, NO_TIME, NOW[1]))
    )
    + MODAL
)
SHORT = (
    8 * anchors("simple", (NO_TIME,)) + 6 * anchors("past", (NO_TIME,))
    + 3 * anchors("progressive", (NO_TIME,)) + 2 * anchors("will", (NO_TIME,))
    + anchors("can", (NO_TIME,)) + anchors("must", (NO_TIME,))
    + anchors("want", (NO_TIME,)) + anchors("progressive", NOW[:2])
    + anchors("past", BEFORE[:2]) + anchors("will", LATER[:2])
)  # fmt: skip
_TIMED = PRESENT + PAST + _FUTURE
ASKED = (
    *3 * tuple(a for a in SHORT if a.tense != "must"), *_TIMED,
    *3 * anchors("can", (NO_TIME,)), *anchors("should", (NO_TIME,)),
    *anchors("have to", (NO_TIME,)), *anchors("would like", (NO_TIME,)),
    *anchors("can", LATER[:2]), *anchors("want", LATER[:2]), *_FREQUENT[:2],
)  # fmt: skip
STATES = tuple(a for a in SHORT if a.tense in ("simple", "past")) + anchors(
    "simple", NOW[:2]
)
DENIED = (
    *3 * tuple(a for a in SHORT if a.tense != "must"), *_TIMED,
    *(
        Anchor(tense)
        for tense in ("can", "want", "could", "would like", "should", "have to")
    ),
    *anchors("can", LATER[:2]), *anchors("want", LATER[:2]),
)  # fmt: skip
COPULA = 8 * anchors("simple", (NO_TIME,)) + 4 * anchors("past", (NO_TIME,)) + (
    *anchors("simple", NOW[:2]), *anchors("past", BEFORE[:4]), *_FREQUENT,
    *anchors("will", (NO_TIME, LATER[0])), *anchors("must", (NO_TIME,)),
    *anchors("can", (NO_TIME,)), *anchors("should", (NO_TIME,)),
)  # fmt: skip
PLAIN_COPULA = tuple(a for a in COPULA if not a.is_inside and a.tense != "must")
THERE = 6 * anchors("simple", (NO_TIME,)) + 3 * anchors("past", (NO_TIME,))
THEN = THERE + anchors("simple", NOW[1:2]) + anchors("past", BEFORE[:2])

TIMES = tuple(
    Anchor("", *words) for words in (*NOW, *BEFORE, *LATER, *_ALWAYS, *_OFTEN, *DAYS)
)

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
DATES = tuple(
    Anchor(
        tense,
        f"on the {english.ordinal(day)} of {month}",
        f"am {german.ordinal(day)} {monat}",
    )
    for tense in ("past", "will")
    for month, monat, days in _MONTHS
    for day in range(1, days + 1)
)
HOURS = tuple(
    Anchor(
        tense,
        f"{day} at {english.clock(hour, quarters)}",
        f"{tag} um {german.clock(hour, quarters)}",
    )
    for tense, (day, tag) in (("past", BEFORE[0]), ("will", LATER[0]))
    for hour in range(1, 13)
    for quarters in range(4)
)
