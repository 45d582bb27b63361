"""The sentences of the phrasebook: frames, each written once for both languages.

Every frame takes a scene and some further arguments, and returns the English and the
German sentence. A scene says who does what (`the doctor`, `buy`, `the red coat`), an
anchor when, and in which tense. English keeps its words together; German spreads them
over the fields of the clause: something in front, the finite verb, the middle field,
and whatever the verb keeps for the very end:

    Gestern | hat | der Arzt den roten Mantel | gekauft.
    (Ich weiß,) dass | der Arzt gestern den roten Mantel | gekauft hat.

Where English has "there is", German has `es gibt` for existence, or for a building in a
town, and `sein` after the place for something at a place:

    There is no bread.                 Es gibt kein Brot.
    There is a hotel in the village.   Im Dorf gibt es ein Hotel.
    There was a dog in the garden.     Im Garten war ein Hund.
"""

from __future__ import annotations

from grammar.clauses import (
    Anchor,
    english_clause,
    english_denial,
    english_objects,
    english_question,
    middle_field,
    sentences,
    verb_first,
    verb_last,
    verb_second,
)
from grammar.english import verb_group
from grammar.german import Case, with_preposition
from grammar.german_verbs import (
    auxiliary,
    bracket,
    imperative,
    infinitive_with_zu,
)
from grammar.phrases import NOTHING, Scene, Words, join


def statement(scene: Scene, anchor: Anchor) -> Words:
    """Makes a main clause: the finite verb is second.

    `The doctor bought it yesterday.` `Der Arzt hat es gestern gekauft.`
    """
    return sentences(english_clause(scene, anchor), verb_second(scene, anchor))


def fronted(scene: Scene, anchor: Anchor) -> Words:
    """Puts the time in front, so that the German subject goes behind the verb.

    `Yesterday the doctor bought it.` `Gestern hat der Arzt es gekauft.`
    """
    tense, time, zeit, _ = anchor
    timeless = Anchor(tense)
    return sentences(
        f"{time} {english_clause(scene, timeless)}",
        f"{zeit} {verb_first(scene, timeless)}",
    )


def denial(scene: Scene, anchor: Anchor) -> Words:
    """Denies what a statement says.

    `The doctor did not buy it.` `Der Arzt hat es nicht gekauft.`
    """
    return sentences(
        english_denial(scene, anchor), verb_second(scene, anchor, negated=True)
    )


def lack(scene: Scene, anchor: Anchor) -> Words:
    """Says that somebody has none, of what kein can deny.

    `She has no red car.` `Sie hat kein rotes Auto.`
    """
    none = scene._replace(
        complement=scene.complement._replace(english=f"no {scene.complement.bare}")
    )
    return sentences(
        english_clause(none, anchor), verb_second(scene, anchor, negated=True)
    )


def question(scene: Scene, anchor: Anchor) -> Words:
    """Asks whether: the finite verb is first.

    `Did the doctor buy it yesterday?` `Hat der Arzt es gestern gekauft?`
    """
    english, german = english_question(scene, anchor), verb_first(scene, anchor)
    return sentences(english, german, mark="?")


def open_question(scene: Scene, word: Words, anchor: Anchor) -> Words:
    """Asks why or when: a question behind its word.

    `Why did the doctor buy it?` `Warum hat der Arzt es gekauft?`
    """
    english, german = english_question(scene, anchor), verb_first(scene, anchor)
    return sentences(f"{word[0]} {english}", f"{word[1]} {german}", mark="?")


def who(scene: Scene, anchor: Anchor) -> Words:
    """Asks for the subject, which is "who", in the order of a statement.

    `Who bought it?` `Wer hat es gekauft?`
    """
    english, german = english_clause(scene, anchor), verb_second(scene, anchor)
    return sentences(english, german, mark="?")


def what(scene: Scene, anchor: Anchor) -> Words:
    """Asks for the complement ("what", "which book", "how old"), which comes first.

    `Who is he waiting for?` `Auf wen wartet er?` `How old is she?` `Wie alt ist sie?`
    """
    words, verb = scene.complement, scene.verb.german
    asked = words.german[verb.case]
    if verb.preposition:
        asked = with_preposition(verb.preposition, asked)
    rest = scene._replace(complement=NOTHING)
    english, german = english_question(rest, anchor), verb_first(rest, anchor)
    return sentences(f"{words.english} {english}", f"{asked} {german}", mark="?")


def reported(scene: Scene, opening: Words, anchor: Anchor) -> Words:
    """Makes a subordinate clause behind its main clause: all verbs are last.

    `I know that the doctor bought it.` `Ich weiß, dass der Arzt es gekauft hat.`
    """
    english, german = english_clause(scene, anchor), verb_last(scene, anchor)
    return sentences(f"{opening[0]} {english}", f"{opening[1]} {german}")


def condition(
    scene: Scene, conjunction: Words, consequence: Words, anchor: Anchor
) -> Words:
    """Makes a subordinate clause in first place, so that the main verb is next.

    `If the doctor buys it, we will stay.` `Wenn der Arzt es kauft, bleiben wir.`
    """
    english, german = english_clause(scene, anchor), verb_last(scene, anchor)
    return sentences(
        f"{conjunction[0]} {english}, {consequence[0]}",
        f"{conjunction[1]} {german}, {consequence[1]}",
    )


def relative(scene: Scene, opening: tuple[Words, Case, str], anchor: Anchor) -> Words:
    """Makes a relative clause: one person in two cases.

    `We saw the doctor who bought it.` `Wir haben den Arzt gesehen, der es gekauft hat.`

    Args:
      opening: the beginning of the main clause, the case it puts the person in, and
        the German verb that closes it, or "".
    """
    (english, german), case, closing = opening
    subject = scene.subject
    action = english_clause(
        scene._replace(subject=subject._replace(english="")), anchor
    )
    head = join(german, subject.german[case], closing)
    return sentences(
        f"{english} {subject.english} who {action}",
        f"{head}, {verb_last(scene, anchor, relative=True)}",
    )


def infinitive(scene: Scene, intention: tuple[Words, str], time: Words) -> Words:
    """Makes an infinitive with zu, which goes inside separable verbs.

    `He got up early in order to open it.`
    `Er ist früh aufgestanden, um es aufzumachen.`

    Args:
      intention: an English past up to "to", a German participle up to the comma or
        "um", and the auxiliary of its perfect.
    """
    subject, verb = scene.subject, scene.verb
    (past, participle), perfect = intention
    finite, who = auxiliary(perfect, subject.person), subject.german[Case.NOM]
    zu = join(middle_field(scene, ""), infinitive_with_zu(verb.german))
    objects = english_objects(scene)
    return sentences(
        join(time[0], subject.english, past, verb.english.base, objects),
        join(time[1], finite, who, participle, zu),
    )


def request(scene: Scene, time: Words) -> Words:
    """Asks somebody to do it: the imperative of du, ihr or Sie.

    `Anna, please open it now.` `Anna, mach es bitte jetzt auf.`
    """
    name, german_name = scene.subject.vocative
    left, right, _ = imperative(scene.verb.german, scene.subject.person)
    english = join("please", scene.verb.english.base, english_objects(scene), time[0])
    german = join(left, _with_please(scene, time[1]), right)
    return sentences(f"{name}, {english}", f"{german_name}, {german}")


def order(scene: Scene, polite: str, time: Words, mark: str) -> Words:
    """Asks du to do it or not to do it, without a name.

    `Open the door!` `Mach die Tür auf!`  `Do not open it.` `Mach es nicht auf.`

    Args:
      polite: "please {}" or "{}, please" for please; "do not {}" for a denial, or "{}".
    """
    left, right, _ = imperative(scene.verb.german, "2s")
    english = join(scene.verb.english.base, english_objects(scene), time[0])
    if "please" in polite:
        middle = _with_please(scene, time[1])
    else:
        middle = middle_field(scene, time[1], negated="not" in polite)
    return sentences(polite.format(english), join(left, middle, right), mark=mark)


def _with_please(scene: Scene, time: str) -> str:
    """Puts bitte behind pronouns and before time, which stands at the same place."""
    return middle_field(scene, join("bitte", time))


def addressed_question(scene: Scene, anchor: Anchor) -> Words:
    """Asks somebody about themselves: du, ihr or Sie, by the name.

    `Mr. Weber, did you buy it?` `Herr Weber, haben Sie es gekauft?`
    """
    english, german = english_question(scene, anchor), verb_first(scene, anchor)
    name, german_name = scene.subject.vocative
    return sentences(f"{name}, {english}", f"{german_name}, {german}", mark="?")


KINDS = ("told", "asked", "no", "not")
"""What may be said of what there is: "no" and "not" deny it."""

_GIBT = {"simple": "gibt", "past": "gab"}


def existence(scene: Scene, kind: str, anchor: Anchor) -> Words:
    """Says that there is something, in a town or anywhere; `kind` is one of `KINDS`."""
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
    """Says that something is at a place; `kind` is one of `KINDS`."""
    place, person = scene.place[1], scene.complement.person
    finite = bracket(scene.verb.german, anchor.tense, person).left
    what = _what(scene, kind, anchor, case=Case.NOM)
    words = (finite, what, place) if kind == "asked" else (place, finite, what)
    return _both(scene, kind, anchor, german=join(*words))


_MARKS = {"told": ".", "asked": "?", "no": ".", "not": "."}


def _what(scene: Scene, kind: str, anchor: Anchor, *, case: Case) -> str:
    thing = scene.complement
    is_denied = kind in ("no", "not")
    cases = thing.denied if is_denied and thing.denied else thing.german
    return join(anchor.german, cases[case])


def _both(scene: Scene, kind: str, anchor: Anchor, *, german: str) -> Words:
    return sentences(_english(scene, kind, anchor), german, mark=_MARKS[kind])


def _english(scene: Scene, kind: str, anchor: Anchor) -> str:
    thing = scene.complement
    be = verb_group(scene.verb.english, anchor.tense, thing.person).statement
    some = "any " if thing.english == thing.bare else ""
    words = {"no": f"no {thing.bare}", "not": f"not {some}{thing.english}"}
    what = join(words.get(kind, thing.english), scene.place[0], anchor.english)
    return join(be, "there", what) if kind == "asked" else join("there", be, what)
