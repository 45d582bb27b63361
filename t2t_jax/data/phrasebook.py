"""The embedded corpus: true English-German sentence pairs from a synchronous grammar.

A fresh machine has no bitext, so the default experiment brings its own. Every pair is
derived by one rule on both sides at once: somebody does something with something (an
`Event`), said with some articles and adjectives (a `Scene`), in some frame (a main
clause, a question, a subordinate clause, a request, …). German needs gender, number
and case on every word and keeps half its verb for the end of the clause, so the
corpus shows what attention is for: agreement, and reordering over long distances.

The German of a sentence is a function of its English. "You" is always called by name,
and the name says which German "you" it is: `Anna` is du, `Mr. Weber` is Sie,
`Anna and Paul` are ihr.

What is held out. An event's *combination* is (subject, verb, complement): ("teacher",
"buy", "coat"), whatever their number, article and adjective, the tense, the frame, or
a recipient. A hash of it decides its split: about one in forty is for `dev`, one
in forty for `test`. So a sentence of `dev` or `test` says in no frame what any sentence
of `train` says in any, though `train` has all its words: the nouns and verbs take part
in other events.

All order is counted, not drawn. Templates take turns, and so do their verbs; the i-th
sentence of a verb is found by a keyed permutation of integers. So nothing depends on
`hash`, on the order of sets, or on a random number generator's version.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, groupby, islice
from typing import NamedTuple

from t2t_jax.data.grammar.frames import Frame
from t2t_jax.data.grammar.order import hashed, permutation
from t2t_jax.data.grammar.scenes import Cast, Event, casts
from t2t_jax.errors import ConfigError

SPLITS = ("train", "dev", "test")
VERSION = 1
_HELD_OUT = 40  # of so many combinations one is for dev and one for test


class Derivation(NamedTuple):
    """A pair and where it comes from.

    Attributes:
      english: the English sentence.
      german: the German sentence.
      template: the names of its cast and its frame: "persons/question".
      combination: subject, verb and complement, what the splits keep apart.
    """

    english: str
    german: str
    template: str
    combination: tuple[str, str, str]


class _Part(NamedTuple):
    """A frame for the events of one verb: a numbered list, never written out."""

    template: str
    frame: Frame
    events: tuple[Event, ...]
    ends: tuple[int, ...]  # of each event, the scenes up to and with it

    @property
    def size(self) -> int:
        return self.ends[-1] * len(self.frame.choices)

    def derive(self, index: int) -> Derivation:
        index, choice = divmod(index, len(self.frame.choices))
        which = bisect_right(self.ends, index)
        event = self.events[which]
        scene = event.scene(index - self.ends[which] + event.size)
        english, german = self.frame.write(scene, *self.frame.choices[choice])
        return Derivation(english, german, self.template, event.combination)


class _Template(NamedTuple):
    """A frame of a cast in a split, its verbs in turn."""

    name: str
    weight: int
    parts: tuple[_Part, ...]

    def derivations(self, key: str) -> Iterator[Derivation]:
        first = hashed(f"{key}|{self.name}") % len(self.parts)
        return _take_turns(
            (map(part.derive, permutation(part.size, f"{key}|{self.name}|{i}")), 1)
            for i, part in enumerate(self.parts[first:] + self.parts[:first])
        )


def split_of(combination: tuple[str, str, str]) -> str:
    """Tells which split a combination belongs to.

    Args:
      combination: the English lemmas of subject, verb and complement.

    Returns:
      One of `SPLITS`.

    Example:
      >>> split_of(("teacher", "buy", "coat"))
      'train'
    """
    place = hashed("|".join(combination)) % _HELD_OUT
    return {0: "dev", 1: "test"}.get(place, "train")


def combinations(split: str) -> tuple[tuple[str, str, str], ...]:
    """Lists the combinations of a split.

    Args:
      split: one of `SPLITS`.

    Returns:
      (subject, verb, complement), each once, always in the same order.

    Raises:
      ConfigError: the split is unknown.
    """
    parts = (part for template in _templates(split) for part in template.parts)
    return tuple(dict.fromkeys(e.combination for part in parts for e in part.events))


def count_pairs(split: str) -> int:
    """Counts the pairs of a split, without writing them.

    Args:
      split: one of `SPLITS`.

    Returns:
      The number of pairs, no two of which share their English sentence.

    Raises:
      ConfigError: the split is unknown.
    """
    return sum(part.size for template in _templates(split) for part in template.parts)


def sentence_pairs(
    split: str, count: int, *, seed: int = 0
) -> Iterator[tuple[str, str]]:
    """Writes distinct sentence pairs of a split.

    Args:
      split: one of `SPLITS`.
      count: how many pairs, at most `count_pairs(split)`. A larger count gives the
        same pairs first.
      seed: which pairs, and in which order; each seed goes through the whole split.

    Returns:
      (English, German) pairs, written as they are asked for.

    Raises:
      ConfigError: the split is unknown or does not hold so many pairs.

    Example:
      >>> english, german = next(sentence_pairs("dev", 1))
      >>> print(english)
      The men are looking for the new shirts at the moment.
      >>> print(german)
      Die Männer suchen im Moment die neuen Hemden.
    """
    return ((d.english, d.german) for d in derivations(split, count, seed=seed))


def derivations(split: str, count: int, *, seed: int = 0) -> Iterator[Derivation]:
    """Writes the pairs of `sentence_pairs` with their templates and combinations.

    Args:
      split: as for `sentence_pairs`.
      count: as for `sentence_pairs`.
      seed: as for `sentence_pairs`.

    Returns:
      The derivations, written as they are asked for.

    Raises:
      ConfigError: the split is unknown or does not hold so many pairs.
    """
    available = count_pairs(split)
    if not 0 <= count <= available:
        raise ConfigError(
            f"phrasebook split {split} holds {available} pairs, not {count}. "
            f"Ask for 0 to {available}."
        )
    key = f"{seed}|{split}"
    turns = ((t.derivations(key), t.weight) for t in _templates(split))
    return islice(_take_turns(turns), count)


def fingerprint() -> str:
    """Hashes the version and the first pairs of each split.

    Returns:
      64 hexadecimal digits, which change when the corpus does.
    """
    digest = hashlib.sha256(f"phrasebook {VERSION}".encode())
    for split in SPLITS:
        for pair in sentence_pairs(split, 1000):
            digest.update("\t".join((*pair, split, "\n")).encode())
    return digest.hexdigest()


@cache
def _templates(split: str) -> tuple[_Template, ...]:
    if split not in SPLITS:
        raise ConfigError(
            f"split={split!r} is not a split of the phrasebook. "
            f"Use one of {', '.join(SPLITS)}."
        )
    return tuple(
        template for cast in casts() for template in _templates_of(cast, split)
    )


def _templates_of(cast: Cast, split: str) -> Iterator[_Template]:
    mine = (event for event in cast.events if split_of(event.combination) == split)
    by_verb = [tuple(events) for _, events in groupby(mine, lambda event: event.verb)]
    ends = [tuple(accumulate(event.size for event in events)) for events in by_verb]
    for frame, weight in cast.frames:
        name = f"{cast.name}/{frame.name}"
        parts = (_Part(name, frame, *part) for part in zip(by_verb, ends, strict=True))
        yield _Template(name, weight, tuple(parts))


def _take_turns(
    sources: Iterable[tuple[Iterator[Derivation], int]],
) -> Iterator[Derivation]:
    """Goes round, taking `weight` of each source, until all are at their end."""
    sources = list(sources)
    while sources:
        going_on = []
        for source, weight in sources:
            taken = list(islice(source, weight))
            yield from taken
            if len(taken) == weight:
                going_on.append((source, weight))
        sources = going_on
