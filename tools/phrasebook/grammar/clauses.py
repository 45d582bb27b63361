"""Clauses of the phrasebook: the word orders of its sentences.

English has two, German three, distinguished by the position of the verb. No clause has
a capital or a full stop yet.
"""

from __future__ import annotations

from typing import NamedTuple

from grammar.english import VerbGroup, verb_group
from grammar.german import Case, with_preposition
from grammar.german_verbs import bracket
from grammar.phrases import Scene, Words, join


class Anchor(NamedTuple):
    """A tense and a time that goes with it.

    Attributes:
      tense: as for `english.verb_group`.
      is_inside: whether English puts it before its verb: "often".
    """

    tense: str
    english: str = ""
    german: str = ""
    is_inside: bool = False


def english_objects(scene: Scene) -> str:
    """Writes particle, complements and place: "a key to the boy in the garden"."""
    what = join(scene.verb.english.particle, scene.complement.english)
    whom = scene.other.english if scene.other else ""
    both = (what, "to", whom) if scene.is_to else (whom, what)
    return join(*both, scene.place[0])


def english_clause(scene: Scene, anchor: Anchor) -> str:
    """Writes "the doctor bought it yesterday"; an empty subject is left out."""
    group = verb_group(scene.verb.english, anchor.tense, scene.subject.person)
    verb, time = group.statement, anchor.english
    if anchor.is_inside:
        verb, time = _with_adverb(group, time), ""
    return join(scene.subject.english, verb, english_objects(scene), time)


def _with_adverb(group: VerbGroup, adverb: str) -> str:
    if group.auxiliary in ("do", "does", "did"):
        return join(adverb, group.statement)
    return join(group.auxiliary, adverb, group.rest)


def english_question(scene: Scene, anchor: Anchor) -> str:
    """Writes "did the doctor buy it yesterday"."""
    group = verb_group(scene.verb.english, anchor.tense, scene.subject.person)
    inside, time = ("", anchor.english)
    if anchor.is_inside:
        inside, time = time, inside
    return join(
        group.auxiliary, scene.subject.english, inside, group.rest,
        english_objects(scene), time,
    )  # fmt: skip


def english_denial(scene: Scene, anchor: Anchor) -> str:
    """Writes "the doctor did not buy it yesterday"."""
    group = verb_group(scene.verb.english, anchor.tense, scene.subject.person)
    no = ("cannot",) if group.auxiliary == "can" else (group.auxiliary, "not")
    return join(
        scene.subject.english, *no, group.rest,
        english_objects(scene), anchor.english,
    )  # fmt: skip


def middle_field(
    scene: Scene, time: str, *, negated: bool = False, is_inside: bool = False
) -> str:
    """Writes what stands between the halves of the German verb, but for the subject.

    Pronouns come first, then time, recipient, complement and place; "oft" and its like
    follow the recipient. What is not known is denied by kein; else nicht follows a
    plain complement and precedes one with a preposition, a predicate, a direction or a
    place.

    Args:
      is_inside: whether the time is of the kind of "oft".
    """
    _, verb, complement, other, _, (_, place) = scene
    preposition = verb.german.preposition
    denied = () if preposition or not negated else complement.denied
    what = (denied or complement.german)[verb.german.case]
    if what and preposition:
        what = with_preposition(preposition, what)
    whom = other.german[Case.DAT] if other else ""
    pronouns = ""
    if complement.is_pronoun and not preposition:
        pronouns, what = what, ""
    if other and other.is_pronoun:
        pronouns, whom = join(pronouns, whom), ""
    nicht = "nicht" if negated and not denied else ""
    if preposition or complement.is_adverbial or verb.german.infinitive == "sein":
        what = join(nicht, what)
    else:
        what = join(what, nicht)
    times = (whom, time) if is_inside else (time, whom)
    return join(pronouns, *times, what, place)


def verb_second(scene: Scene, anchor: Anchor, *, negated: bool = False) -> str:
    """Writes "der Arzt hat es gestern (nicht) gekauft"."""
    left, right, _ = bracket(scene.verb.german, anchor.tense, scene.subject.person)
    middle = _middle(scene, anchor, negated=negated)
    return join(scene.subject.german[Case.NOM], left, middle, right)


def verb_first(scene: Scene, anchor: Anchor, *, negated: bool = False) -> str:
    """Writes "hat der Arzt es gestern gekauft", also to follow what is in front."""
    left, right, _ = bracket(scene.verb.german, anchor.tense, scene.subject.person)
    middle = _middle(scene, anchor, negated=negated)
    return join(left, scene.subject.german[Case.NOM], middle, right)


def verb_last(scene: Scene, anchor: Anchor, *, relative: bool = False) -> str:
    """Writes "der Arzt es gestern gekauft hat", to follow a conjunction.

    Args:
      relative: whether a relative pronoun stands for the subject.
    """
    subject = scene.subject
    who = subject.relative if relative else subject.german[Case.NOM]
    end = bracket(scene.verb.german, anchor.tense, subject.person).final
    return join(who, _middle(scene, anchor), end)


def _middle(scene: Scene, anchor: Anchor, *, negated: bool = False) -> str:
    return middle_field(
        scene, anchor.german, negated=negated, is_inside=anchor.is_inside
    )


def sentences(english: str, german: str, *, mark: str = ".") -> Words:
    """Makes clauses sentences: a capital in front and a mark behind."""
    return (
        english[0].upper() + english[1:] + mark,
        german[0].upper() + german[1:] + mark,
    )
