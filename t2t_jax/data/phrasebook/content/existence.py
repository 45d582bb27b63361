"""Sentences of the phrasebook that begin with "there is".

English has one form, German two: `es gibt` for existence, or for a building in a town,
and `sein` after the place for something at a place:

    There is no bread.                 Es gibt kein Brot.
    There is a hotel in the village.   Im Dorf gibt es ein Hotel.
    There was a dog in the garden.     Im Garten war ein Hund.
"""

from __future__ import annotations

from t2t_jax.data.phrasebook.grammar.clauses import Anchor, sentences
from t2t_jax.data.phrasebook.grammar.english import verb_group
from t2t_jax.data.phrasebook.grammar.german import Case
from t2t_jax.data.phrasebook.grammar.german_verbs import bracket
from t2t_jax.data.phrasebook.grammar.phrases import Scene, Words, join

KINDS = ("told", "asked", "no", "not")
"""What may be said of what there is: "no" and "not" deny it."""

_GIBT = {"simple": "gibt", "past": "gab"}


def existence(scene: Scene, kind: str, anchor: Anchor) -> Words:
    """Says that there is something, in a town or anywhere.

    Args:
      scene: its complement is what there is.
      kind: one of `KINDS`.
      anchor: when; "simple" or "past".

    Returns:
      The English and the German sentence.
    """
    place, finite = scene.place[1], _GIBT[anchor.tense]
    what = _what(scene, kind, anchor, case=Case.ACC)
    if kind == "asked":
        german = join(finite, "es", place, what)
    elif place:
        german = join(place, finite, "es", what)
    else:
        german = join("es", finite, what)
    return _both(scene, kind, anchor, german=german)


def presence(scene: Scene, kind: str, anchor: Anchor) -> Words:
    """Says that something is at a place.

    Args:
      scene: its complement is what is there, its place where.
      kind: one of `KINDS`.
      anchor: when; "simple" or "past".

    Returns:
      The English and the German sentence.
    """
    place, person = scene.place[1], scene.complement.person
    finite = bracket(scene.verb.german, anchor.tense, person).left
    what = _what(scene, kind, anchor, case=Case.NOM)
    words = (finite, what, place) if kind == "asked" else (place, finite, what)
    return _both(scene, kind, anchor, german=join(*words))


_MARKS = {"told": ".", "asked": "?", "no": ".", "not": "."}


def _what(scene: Scene, kind: str, anchor: Anchor, *, case: Case) -> str:
    """Says in German what there is, behind the time."""
    thing = scene.complement
    is_denied = kind in ("no", "not")
    cases = thing.denied if is_denied and thing.denied else thing.german
    return join(anchor.german, cases[case])


def _both(scene: Scene, kind: str, anchor: Anchor, *, german: str) -> Words:
    """Makes a sentence of the German words, and the English one beside it."""
    return sentences(_english(scene, kind, anchor), german, mark=_MARKS[kind])


def _english(scene: Scene, kind: str, anchor: Anchor) -> str:
    thing = scene.complement
    be = verb_group(scene.verb.english, anchor.tense, thing.person).statement
    some = "any " if thing.english == thing.bare else ""
    words = {"no": f"no {thing.bare}", "not": f"not {some}{thing.english}"}
    what = join(words.get(kind, thing.english), scene.place[0], anchor.english)
    return join(be, "there", what) if kind == "asked" else join("there", be, what)
