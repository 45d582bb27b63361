"""German verbs for the phrasebook: conjugation, and the bracket round a clause.

A German clause is held between two halves of its verb. In a main clause the finite
half stands second and the rest waits at the very end (`Er hat das Fenster aufgemacht`,
`Er macht das Fenster auf`); in a subordinate clause both stand at the end
(`dass er das Fenster aufmacht`). Persons are "1s" to "3p"; polite Sie is "3p".
"""

from __future__ import annotations

from typing import NamedTuple

from grammar.german import Case

PERSONS = ("1s", "2s", "3s", "1p", "2p", "3p")

_IRREGULAR = {
    "haben": "habe hast hat haben habt haben",
    "sein": "bin bist ist sind seid sind",
    "mögen": "mag magst mag mögen mögt mögen",
    "wollen": "will willst will wollen wollt wollen",
    "möchten": "möchte möchtest möchte möchten möchtet möchten",
    "will": "werde wirst wird werden werdet werden",
    "can": "kann kannst kann können könnt können",
    "must": "muss musst muss müssen müsst müssen",
    "should": "sollte solltest sollte sollten solltet sollten",
    "wanted": "wollte wolltest wollte wollten wolltet wollten",
    "had to": "musste musstest musste mussten musstet mussten",
    "could": "konnte konntest konnte konnten konntet konnten",
}
"""Finite forms of 1s to 3p, by infinitive or by the English modal."""

_IRREGULAR |= {
    "want": _IRREGULAR["wollen"],
    "have to": _IRREGULAR["must"],
    "would like": _IRREGULAR["möchten"],
}
_PRETERITES = {
    "haben": "hatte hattest hatte hatten hattet hatten",
    "sein": "war warst war waren wart waren",
    "mögen": "mochte mochtest mochte mochten mochtet mochten",
    "wollen": "wollte wolltest wollte wollten wolltet wollten",
    "kennen": "kannte kanntest kannte kannten kanntet kannten",
}
"""The verbs whose past is told in the preterite; that of all others is a perfect."""


_NEEDS_E = ("t", "d", "gn", "chn")


class GermanVerb(NamedTuple):
    """A German verb and what it governs.

    Attributes:
      prefix: the separable prefix ("auf"), or "".
      infinitive: without that prefix: "machen".
      changed: the stem of du and er where its vowel changes ("lies"), or "".
      participle: with the prefix: "aufgemacht".
      preposition: before the complement ("auf"), or "".
    """

    prefix: str
    infinitive: str
    changed: str
    participle: str
    auxiliary: str
    preposition: str
    case: Case

    @property
    def lemma(self) -> str:
        """The infinitive, and the preposition behind it: "warten auf"."""
        return f"{self.prefix}{self.infinitive} {self.preposition}".rstrip()


class Bracket(NamedTuple):
    """The two halves of the verb that brackets a German clause.

    Attributes:
      left: the finite verb in second (or first) place: "macht", "hat".
      right: what waits at the end of a main clause: "auf", "aufgemacht", or "".
      final: both together, as a subordinate clause ends: "aufmacht", "aufgemacht hat".
    """

    left: str
    right: str
    final: str


def german_verb(
    words: str, *, changed: str = "", participle: str = "", auxiliary: str = "haben",
    governs: str = "acc",
) -> GermanVerb:  # fmt: skip
    """Makes a verb from dictionary notation.

    Args:
      words: the infinitive, a separable prefix cut off by "|": "auf|machen".
      changed: the stem with changed vowel, or "".
      participle: without the prefix, if it is irregular.
      governs: "acc", "dat", or a preposition and one of them: "auf acc".

    Example:
      >>> german_verb("auf|machen").participle
      'aufgemacht'
    """
    prefix, _, infinitive = words.rpartition("|")
    preposition, _, case = governs.rpartition(" ")
    participle = participle or _regular_participle(infinitive)
    return GermanVerb(
        prefix, infinitive, changed, prefix + participle, auxiliary, preposition,
        Case[case.upper()],
    )  # fmt: skip


def _regular_participle(infinitive: str) -> str:
    unstressed = infinitive.startswith(("be", "ver", "über", "er"))
    ge = "" if unstressed or infinitive.endswith("ieren") else "ge"
    return ge + _with_t(infinitive.removesuffix("en"))


def _with_t(stem: str) -> str:
    return stem + ("et" if stem.endswith(_NEEDS_E) else "t")


def present(verb: GermanVerb, person: str) -> str:
    """Conjugates in the present tense, without the prefix.

    Example:
      >>> [present(german_verb("lesen", changed="lies"), p) for p in PERSONS]
      ['lese', 'liest', 'liest', 'lesen', 'lest', 'lesen']
    """
    if verb.infinitive in _IRREGULAR:
        return _IRREGULAR[verb.infinitive].split()[PERSONS.index(person)]
    stem = verb.infinitive.removesuffix("en")
    if person in ("1p", "3p"):
        return verb.infinitive
    if person == "1s":
        return stem + "e"
    if person == "2p":
        return _with_t(stem)
    if person == "3s":
        return verb.changed + "t" if verb.changed else _with_t(stem)
    if verb.changed:
        return verb.changed + ("t" if verb.changed.endswith(("s", "ß")) else "st")
    return stem + _ending_of_du(stem)


def _ending_of_du(stem: str) -> str:
    if stem.endswith(_NEEDS_E):
        return "est"
    return "t" if stem.endswith(("s", "ß", "z")) else "st"


def bracket(verb: GermanVerb, tense: str, person: str) -> Bracket:
    """Conjugates a verb as the two ends of a clause.

    Args:
      tense: an English tense of `english.verb_group`: the progressive is a
        German present, the simple past a perfect, or the preterite of the few verbs
        of which that is usual (haben, sein, mögen, wollen, kennen).

    Example:
      >>> bracket(german_verb("auf|machen"), "past", "3s")
      Bracket(left='hat', right='aufgemacht', final='aufgemacht hat')
    """
    if tense in ("progressive", "simple"):
        finite = present(verb, person)
        return Bracket(finite, verb.prefix, verb.prefix + finite)
    if tense == "past" and verb.infinitive in _PRETERITES:
        finite = _PRETERITES[verb.infinitive].split()[PERSONS.index(person)]
        return Bracket(finite, verb.prefix, verb.prefix + finite)
    if tense == "past":
        finite, right = auxiliary(verb.auxiliary, person), verb.participle
    else:
        finite, right = auxiliary(tense, person), verb.prefix + verb.infinitive
    return Bracket(finite, right, f"{right} {finite}")


def auxiliary(name: str, person: str) -> str:
    """Looks up the present of haben, sein, or the verb for an English modal.

    Example:
      >>> auxiliary("sein", "2s"), auxiliary("must", "2p")
      ('bist', 'müsst')
    """
    return _IRREGULAR[name].split()[PERSONS.index(person)]


def imperative(verb: GermanVerb, person: str) -> Bracket:
    """Makes a request of du ("2s"), ihr ("2p") or Sie ("3p").

    Only e → i survives in the imperative of du (`lies`), never a → ä (`wasch`).

    Example:
      >>> imperative(german_verb("auf|machen"), "3p").left
      'machen Sie'
    """
    stem = verb.infinitive.removesuffix("en")
    if person == "3p":
        left = f"{verb.infinitive} Sie"
    elif person == "2p":
        left = present(verb, "2p")
    elif verb.changed and "ä" not in verb.changed:
        left = verb.changed
    else:
        left = stem + "e" * stem.endswith(("t", "d", "ier", "eis"))
    return Bracket(left, verb.prefix, "")


def infinitive_with_zu(verb: GermanVerb) -> str:
    """Makes the infinitive of `um … zu …`.

    Example:
      >>> [infinitive_with_zu(german_verb(word)) for word in ("kaufen", "auf|machen")]
      ['zu kaufen', 'aufzumachen']
    """
    joint = "zu" if verb.prefix else "zu "
    return verb.prefix + joint + verb.infinitive
