"""Derives the English-German sentence pairs of the embedded corpus.

Both sides of a pair are derived at once from an event (subject, verb, complement:
`Event`), expressed with determiners and adjectives (a `Scene`), in a frame (a main
clause, a question, a subordinate clause, a request, …).
German inflects every word for gender, number and case and puts part of its verb at the
end of the clause, so the corpus exercises agreement and reordering over long distances.

The German of a sentence is a function of its English. Where English is
ambiguous, one translation is always chosen:

- "you" is du. With a vocative the name determines the pronoun: `Anna`
  is du, `Mr. Weber` is Sie, `Anna and Paul` are ihr.
- "it" is always es.
- The simple past is a perfect ("bought", hat gekauft); that of be, have, like, want,
  know and the modal verbs is a preterite (war, hatte, mochte, wollte, kannte, konnte).
- "There is" without a place, or of a building in a town, is es gibt; something at a
  place takes sein after the place ("Im Garten ist ein Hund").
- "A", "any" and nouns without an article are negated by kein, all else by nicht.
- Who "is a teacher" is Lehrer without an article, or Lehrerin if it is a woman; "I" and
  "you" are men.

What is held out. An event's *combination* is (subject, verb, complement), by their
German lemmas: ("Lehrer", "kaufen", "Mantel"), whatever their number, article and
adjective, the tense, the frame, a recipient or a place. A hash of it decides its split:
about one in forty is for `dev`, one in forty for `test`. So the
events of `dev` and `test` are not in `train` in any frame, but all their words are, in
other events. With two subjects or complements the first combination decides, and
`train` has none of the others' splits. Those of `examples` are in `test`.

Some users type "don't" for "do not", no capital letters, or no full stop. Part of the
corpus is spelt so; its German stays formal, but for a missing mark.

No random number generator is used. Templates are interleaved, and the choices of the
i-th sentence are the digits of a hash of i: independent of `hash`, of the order of
sets, and of a generator's version.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import count as counting
from itertools import islice
from typing import Any, NamedTuple

from grammar.clauses import Anchor
from grammar.content.casts import casts
from grammar.content.frames import Frame
from grammar.content.scenes import Cast
from grammar.examples import COMBINATIONS
from grammar.order import Choices, hashed, interleave
from grammar.phrases import Scene, Words

SPLITS = ("train", "dev", "test")
VERSION = 2

_ATTEMPTS = 500  # before a template that has nothing new is left out
_HELD_OUT = 40  # of so many combinations one is for dev and one for test


_NEGATIVES = re.compile(
    r"\b(?:(do|does|did|is|are|was|were|could|should|would|will) not|(can)not)\b",
    re.IGNORECASE,
)
_IRREGULAR = {"can": "can't", "will": "won't"}
_SUBJECTS = re.compile(
    r"^(?:(I) (am)|(You|We|They) (are)|(I|You|He|She|It|We|They) (will|would)"
    r"|(He|She|It|There|That|Who|Where|What) (is))\b(?! not\b)|^(I) (am)\b"
)
_SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "would": "'d"}
_CONTRACTED = 3  # one of 3 sentences is contracted, if possible
_INFORMAL = 24  # one of 24 sentences lacks capitals and the mark, one only the mark


class Derivation(NamedTuple):
    """A pair and where it comes from.

    Attributes:
      template: the names of its cast and its frame: "persons/question".
      combination: subject, verb and complement, what the splits keep apart.
    """

    english: str
    german: str
    template: str
    combination: tuple[str, str, str]


@lru_cache(maxsize=200_000)
def split_of(combination: tuple[str, str, str]) -> str:
    """Returns the split of a combination of German lemmas.

    Example:
      >>> split_of(("Lehrer", "kaufen", "Mantel"))
      'train'
    """
    if combination in COMBINATIONS:
        return "test"
    place = hashed("|".join(combination)) % _HELD_OUT
    return {0: "dev", 1: "test"}.get(place, "train")


def derivations(split: str, count: int) -> Iterator[Derivation]:
    """Yields distinct derivations of a split; a larger count gives the same first.

    Example:
      >>> english, german, *_ = next(derivations("dev", 1))
      >>> print(english)
      My good wife laughs about the hat.
      >>> print(german)
      Meine gute Frau lacht über den Hut.
    """
    return islice(_distinct(split, f"0|{split}"), count)


def tsv_lines(split: str, count: int) -> Iterator[str]:
    """Yields pairs of a split as lines: English, tab, German."""
    return (f"{d.english}\t{d.german}\n" for d in derivations(split, count))


def fingerprint() -> str:
    """Returns the SHA-256 of the version and the first pairs of each split."""
    digest = hashlib.sha256(f"phrasebook {VERSION}".encode())
    for split in SPLITS:
        # Those held out take longer to find.
        for line in tsv_lines(split, 1_000 if split == "train" else 100):
            digest.update(f"{line[:-1]}\t{split}\t\n".encode())
    return digest.hexdigest()


def _distinct(split: str, key: str) -> Iterator[Derivation]:
    """Derives sentences in turn, and none of them a second time."""
    templates = interleave(
        ((cast, frame), weight) for cast in casts() for frame, weight in cast.frames
    )
    seen: set[int] = set()
    exhausted: set[tuple[str, str]] = set()
    for number in counting():
        cast, frame = templates[number % len(templates)]
        if (cast.name, frame.name) in exhausted:
            continue
        for attempt in range(_ATTEMPTS):
            choices = Choices(f"{key}|{number}|{attempt}")
            made = _derive(cast, frame, split, choices)
            if made is not None and (name := hashed(made.english)) not in seen:
                seen.add(name)
                yield made
                break
        else:
            exhausted.add((cast.name, frame.name))


def _derive(
    cast: Cast, frame: Frame, split: str, choices: Choices
) -> Derivation | None:
    """Derives a sentence of a split, or None if the choices lead to no such."""
    event = cast.event(choices)
    if event is None:
        return None
    first, *others = event.combinations
    if split_of(first) != split:
        return None
    if split == "train" and any(split_of(other) != "train" for other in others):
        return None
    try:
        scene = event.scene(choices, frame.mood)
    except LookupError:
        return None
    arguments = choices.of(frame.choices)
    if _is_ambiguous(scene, arguments):
        return None
    english, german = typed(frame.write(scene, *arguments), choices)
    return Derivation(english, german, f"{cast.name}/{frame.name}", first)


def _is_ambiguous(scene: Scene, arguments: tuple[Any, ...]) -> bool:
    """Tells whether it might be present or past: "they put on a hat"."""
    verb = scene.verb.english
    return (
        verb.past == verb.base
        and scene.subject.person != "3s"
        and any(
            isinstance(argument, Anchor) and argument[:2] == ("past", "")
            for argument in arguments
        )
    )


def contracted(english: str) -> str:
    """Contracts negations and pronouns with their verb.

    Example:
      >>> contracted("She does not know that we will not come.")
      "She doesn't know that we won't come."
      >>> contracted("I am not tired."), contracted("He cannot swim.")
      ("I'm not tired.", "He can't swim.")
    """
    text = _NEGATIVES.sub(_contract, english)
    return _SUBJECTS.sub(_contract_subject, text)


def _contract(found: re.Match[str]) -> str:
    word = found[1] or found[2]
    return _IRREGULAR.get(word, f"{word}n't")


def _contract_subject(found: re.Match[str]) -> str:
    subject, verb = (group for group in found.groups() if group)
    return subject + _SHORT[verb]


def typed(pair: Words, choices: Choices) -> Words:
    """Chooses the spelling of the English; injective."""
    english, german = pair
    if choices.below(_CONTRACTED) == 0:
        english = contracted(english)
    style = choices.below(_INFORMAL)
    if style > 1:
        return english, german
    if style == 0:
        english = english.lower()
    return english.rstrip(".?!"), german.rstrip(".?!")
