"""Clauses of the phrasebook: the word orders that its sentences are made of.

English has two, German three, and what tells them apart is the verb. Each function
writes one of them for a scene and an anchor, without capital and full stop.
"""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.grammar.english import verb_group
from t2t_jax.data.grammar.german import Case
from t2t_jax.data.grammar.german_verbs import bracket
from t2t_jax.data.grammar.phrases import Scene, Words, join


class Anchor(NamedTuple):
    """A tense and a time that goes with it.

    Attributes:
      tense: as for `english.verb_group`.
      english: the time, or "".
      german: the same time.
    """

    tense: str
    english: str = ""
    german: str = ""


def english_clause(scene: Scene, anchor: Anchor) -> str:
    """Writes subject, verb, complements, time.

    Args:
      scene: who does what; an empty subject is left out.
      anchor: when.

    Returns:
      "the doctor bought it yesterday".
    """
    verb = verb_group(scene.verb.english, anchor.tense, scene.subject.person)
    return join(
        scene.subject.english, verb.statement, scene.complements[0], anchor.english
    )


def english_question(scene: Scene, anchor: Anchor) -> str:
    """Writes auxiliary, subject, the rest of the verb, complements, time.

    Args:
      scene: who does what.
      anchor: when.

    Returns:
      "did the doctor buy it yesterday".
    """
    subject, verb, (what, _) = scene
    group = verb_group(verb.english, anchor.tense, subject.person)
    return join(group.auxiliary, subject.english, group.rest, what, anchor.english)


def verb_second(scene: Scene, anchor: Anchor, *, negated: bool = False) -> str:
    """Writes a German main clause that the subject begins.

    `nicht` follows a plain complement and precedes one with a preposition.

    Args:
      scene: who does what.
      anchor: when.
      negated: whether to deny it; its complement is then definite.

    Returns:
      "der Arzt hat es gestern (nicht) gekauft".
    """
    subject, verb, (_, what) = scene
    left, right, _ = bracket(verb.german, anchor.tense, subject.person)
    if negated:
        what = f"nicht {what}" if verb.german.preposition else f"{what} nicht"
    return join(subject.german[Case.NOM], left, anchor.german, what, right)


def verb_first(scene: Scene, anchor: Anchor) -> str:
    """Writes a German question, or a main clause but for what is put in front.

    Args:
      scene: who does what.
      anchor: when.

    Returns:
      "hat der Arzt es gestern gekauft".
    """
    subject, verb, (_, what) = scene
    left, right, _ = bracket(verb.german, anchor.tense, subject.person)
    return join(left, subject.german[Case.NOM], anchor.german, what, right)


def verb_last(scene: Scene, anchor: Anchor, *, relative: bool = False) -> str:
    """Writes a German subordinate clause but for its conjunction.

    Args:
      scene: who does what.
      anchor: when.
      relative: whether a relative pronoun stands for the subject.

    Returns:
      "der Arzt es gestern gekauft hat".
    """
    subject, verb, (_, what) = scene
    who = subject.relative if relative else subject.german[Case.NOM]
    end = bracket(verb.german, anchor.tense, subject.person).final
    return join(who, anchor.german, what, end)


def sentences(english: str, german: str, *, mark: str = ".") -> Words:
    """Makes clauses sentences: a capital in front and a mark behind.

    Args:
      english: the English words.
      german: the German words.
      mark: "." or "?".

    Returns:
      Both sentences.

    Example:
      >>> sentences("who", "wer", mark="?")
      ('Who?', 'Wer?')
    """
    return (
        english[0].upper() + english[1:] + mark,
        german[0].upper() + german[1:] + mark,
    )
