"""Scenes of the phrasebook from words, for sentences that were written by hand."""

from grammar import determiners, lexicon
from grammar.content import deeds, frames, people, whereabouts
from grammar.content.nominals import adverbial, how, predicate
from grammar.content.scenes import PRICES, THE_PRICE
from grammar.lexicon import Verb
from grammar.phrases import (
    NOTHING,
    Phrase,
    Scene,
    both,
    located,
    noun_phrase,
)

FRAMES = {f.name: f for f in vars(frames).values() if isinstance(f, frames.Frame)}

_CLASSES = [c for c in vars(lexicon).values() if isinstance(c, lexicon.NounClass)]
_VERBS = [
    verb
    for value in (*vars(deeds).values(), *vars(whereabouts).values())
    if isinstance(value, tuple)
    for verb in ((value,) if isinstance(value, Verb) else value)
    if isinstance(verb, Verb)
]
_ASKING = (*determiners.WHICH_OR_HOW_MANY, *determiners.HOW_MUCH)
_ADJECTIVES = [*people.AGED[0].predicates, *people.IT_AS_TIME.predicates]
_ADJECTIVES += [a for c in _CLASSES for a in c.all_adjectives]
_DEMONSTRATIVES = {
    word: Phrase(word, ("das",) * 3, person)
    for word, person in (
        ("this", "3s"),
        ("that", "3s"),
        ("these", "3p"),
        ("those", "3p"),
    )
}
_SUBJECTS = {
    phrase.vocative[0] or phrase.english: phrase
    for nominal in (*people.PRONOUNS, people.IT, people.WHO, *people.NAMES)
    for phrase in nominal.fixed
} | _DEMONSTRATIVES
_ADDRESSED = {p.fixed[0].vocative[0]: p.fixed[0] for p in people.ADDRESSED}
_COMPLEMENTS = {
    phrase.english: phrase
    for nominal in (
        *(how(adjective) for adjective in _ADJECTIVES if adjective.german),
        *(predicate(adjective) for adjective in _ADJECTIVES),
        *(adverbial(*words) for verb in _VERBS for words in verb.phrases),
        *people.OBJECTS.values(), *people.NAMES, *PRICES, THE_PRICE,
    )
    for phrase in nominal.fixed
}  # fmt: skip
_COMPLEMENTS |= {
    "": NOTHING,
    "who": Phrase("who", ("wer", "wen", "wem")),
    "what": Phrase("what", ("was",) * 3),
}


def scene_of(subject, verb, complement="", other="", place="", *, called=False):
    """Makes the scene of "my brother | give to | a key | the boy | in the garden".

    `called` says that the subject is "you", and its words the name.
    """
    is_to = verb.endswith(" to") and bool(other)
    verb = _verb(verb.removesuffix(" to") if is_to else verb, complement)
    return Scene(
        _ADDRESSED[subject] if called else _subject(subject),
        verb,
        _predicate(subject, complement) or _phrase(complement, _COMPLEMENTS),
        _phrase(other, _COMPLEMENTS | _NAMED) if other else None,
        is_to,
        _place(place),
    )


def _subject(words):
    if words == "there":
        return Phrase("there", ("", "", ""))
    return _phrase(words, _SUBJECTS)


_NAMED = {name: _SUBJECTS[name] for name in ("Anna", "Maria", "Paul", "Peter")}


def _predicate(subject, complement):
    """Finds "a teacher" behind "is", which has no article in German."""
    women = {p.fixed[0].english for p in people.WOMEN} | {"she", "my mother"}
    kinds = people.PROFESSIONS_OF_WOMEN if subject in women else people.PROFESSIONS
    if subject not in women | {"he"}:
        return None
    phrases = (p for n in (*kinds, *people.PROFESSIONS_OF_MANY) for p in n.fixed)
    return next((p for p in phrases if p.english == complement), None)


def _verb(name, complement):
    """Finds a verb by its name, the one that takes such a complement."""
    named = [verb for verb in _VERBS if verb.name == name]
    head = complement.rpartition(" ")[2]
    for verb in named:
        words = {w for c in verb.complements for n in c.nouns for w in n[:2]}
        words |= {english for english, _ in verb.phrases} | set(verb.pronouns.split())
        if {complement, head} & words:
            return verb
    return named[0]


def _phrase(words, fixed):
    if words in fixed:
        return fixed[words]
    first, _, second = words.partition(" and ")
    if second:
        return both(_phrase(first, fixed), _phrase(second, fixed))
    return next(_noun_phrases(words))


def _noun_phrases(words):
    for kind in _CLASSES:
        adjectives = {a.english: a for a in kind.all_adjectives}
        for determiner in (*kind.determiners[1], *_ASKING):
            for noun in kind.nouns:
                head = noun.english_plural if determiner.plural else noun.english
                before = words.removesuffix(head).strip()
                if not f" {words}".endswith(f" {head}"):
                    continue
                article = before.split(" ")[0] if determiner.english == "a" else ""
                first = article if article in ("a", "an") else determiner.english
                between = before.removeprefix(first).split()
                if before.startswith(first) and set(between) <= set(adjectives):
                    found = tuple(adjectives[word] for word in between)
                    made = noun_phrase(determiner, found, noun)
                    if made.english == words:
                        yield made


def _place(words):
    if not words:
        return "", ""
    preposition, _, rest = words.partition(" the ")
    if not rest:
        preposition, _, rest = words.partition(" this ")
    where = words.removeprefix(preposition).strip()
    verb = _verb(f"be {preposition}", rest)
    return located(preposition, verb.german.preposition, _phrase(where, {}))
