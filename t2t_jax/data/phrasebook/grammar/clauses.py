"""Clauses of the phrasebook: the word orders of its sentences.

English has two, German three, distinguished by the position of the verb. Each function
forms one of them for a scene and an anchor, without capital and full stop.
"""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.phrasebook.grammar.english import VerbGroup, verb_group
from t2t_jax.data.phrasebook.grammar.german import Case, with_preposition
from t2t_jax.data.phrasebook.grammar.german_verbs import bracket
from t2t_jax.data.phrasebook.grammar.phrases import Scene, Words, join


class Anchor(NamedTuple):
    """A tense and a time that goes with it.

    Attributes:
      tense: as for `english.verb_group`.
      english: the time, or "".
      german: the same time.
      is_inside: whether English puts it before its verb: "often".
    """

    tense: str
    english: str = ""
    german: str = ""
    is_inside: bool = False


def english_objects(scene: Scene) -> str:
    """Writes the complements in the English order, and the place.

    Returns:
      "the boy a key in the garden", "a key to the boy", "ten euros for the coat".
    """
    what = join(scene.verb.english.particle, scene.complement.english)
    whom = scene.other.english if scene.other else ""
    both = (what, "to", whom) if scene.is_to else (whom, what)
    return join(*both, scene.place[0])


def english_clause(scene: Scene, anchor: Anchor) -> str:
    """Writes subject, verb, complements, time.

    Args:
      scene: who does what; an empty subject is left out.

    Returns:
      "the doctor bought it yesterday".
    """
    group = verb_group(scene.verb.english, anchor.tense, scene.subject.person)
    verb, time = group.statement, anchor.english
    if anchor.is_inside:
        verb, time = _with_adverb(group, time), ""
    return join(scene.subject.english, verb, english_objects(scene), time)


def _with_adverb(group: VerbGroup, adverb: str) -> str:
    """Puts "often" before a full verb, and behind an auxiliary that is in sight."""
    if group.auxiliary in ("do", "does", "did"):
        return join(adverb, group.statement)
    return join(group.auxiliary, adverb, group.rest)


def english_question(scene: Scene, anchor: Anchor) -> str:
    """Writes auxiliary, subject, the rest of the verb, complements, time.

    Returns:
      "did the doctor buy it yesterday".
    """
    group = verb_group(scene.verb.english, anchor.tense, scene.subject.person)
    inside, time = ("", anchor.english)
    if anchor.is_inside:
        inside, time = time, inside
    return join(
        group.auxiliary, scene.subject.english, inside, group.rest,
        english_objects(scene), time,
    )  # fmt: skip


def english_denial(scene: Scene, anchor: Anchor) -> str:
    """Writes subject, auxiliary, not, the rest of the verb, complements, time.

    Args:
      scene: who does not do what.

    Returns:
      "the doctor did not buy it yesterday".
    """
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

    Returns:
      "ihm gestern den Schlüssel nicht", "heute nicht auf den Bus".
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
    """Writes a German main clause that the subject begins.

    Returns:
      "der Arzt hat es gestern (nicht) gekauft".
    """
    left, right, _ = bracket(scene.verb.german, anchor.tense, scene.subject.person)
    middle = _middle(scene, anchor, negated=negated)
    return join(scene.subject.german[Case.NOM], left, middle, right)


def verb_first(scene: Scene, anchor: Anchor, *, negated: bool = False) -> str:
    """Writes a German question, or a main clause but for what is put in front.

    Returns:
      "hat der Arzt es gestern gekauft".
    """
    left, right, _ = bracket(scene.verb.german, anchor.tense, scene.subject.person)
    middle = _middle(scene, anchor, negated=negated)
    return join(left, scene.subject.german[Case.NOM], middle, right)


def verb_last(scene: Scene, anchor: Anchor, *, relative: bool = False) -> str:
    """Writes a German subordinate clause but for its conjunction.

    Args:
      relative: whether a relative pronoun stands for the subject.

    Returns:
      "der Arzt es gestern gekauft hat".
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
    """Makes clauses sentences: a capital in front and a mark behind.

    Args:
      mark: ".", "?" or "!".

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
