"""The subjects of the phrasebook and their predicates."""

from __future__ import annotations

from grammar import english, german, lexicon
from grammar.content.nominals import (
    Nominal,
    invariable,
    of_classes,
    pronoun,
)
from grammar.determiners import NONE_PLURAL, OF_PEOPLE, A
from grammar.lexicon import Adjective
from grammar.phrases import Phrase, noun_phrase

_OF_PERSONS = lexicon.PEOPLE.adjectives
_OF_IT = tuple(
    Adjective(word, wort, wort)
    for word, wort in (
        ("cold", "kalt"), ("warm", "warm"), ("hot", "heiß"), ("dark", "dunkel"),
        ("late", "spät"), ("good", "gut"), ("important", "wichtig"),
        ("easy", "einfach"), ("difficult", "schwierig"), ("expensive", "teuer"),
        ("beautiful", "schön"), ("new", "neu"), ("old", "alt"), ("big", "groß"),
        ("small", "klein"), ("quiet", "ruhig"),
    )
)  # fmt: skip

NUMBERS = (*range(2, 21), *range(25, 100, 5))
_AGES = tuple(
    Adjective(f"{english.number(n)} years old", "", f"{german.number(n)} Jahre alt")
    for n in NUMBERS
)
_TIMES = tuple(
    Adjective(english.clock(hour, quarters), "", german.clock(hour, quarters))
    for hour in range(1, 13)
    for quarters in range(4)
)

SPEAKERS = (
    invariable("I", "ich", "1s", predicates=_OF_PERSONS),
    invariable("you", "du", "2s", predicates=_OF_PERSONS),
    invariable("we", "wir", "1p", predicates=_OF_PERSONS),
)
HE = invariable("he", "er", predicates=_OF_PERSONS)
SHE = invariable("she", "sie", predicates=_OF_PERSONS)
THEY = invariable("they", "sie", "3p", predicates=_OF_PERSONS)
IT = invariable("it", "es", predicates=_OF_IT)
IT_AS_TIME = invariable("it", "es", predicates=_TIMES)
WHO = invariable("who", "wer", predicates=_OF_PERSONS)
PRONOUNS = (*SPEAKERS, *SPEAKERS[:2], HE, SHE, THEY)


AGED = tuple(
    nominal._replace(predicates=_AGES) for nominal in (*SPEAKERS[:2], HE, SHE, THEY)
)


def _named(name: str, german: str, inflected: str = "") -> Nominal:
    cases = (german, inflected or german, inflected or german)
    return Nominal(name, fixed=(Phrase(name, cases),), predicates=_OF_PERSONS)


MEN = (
    _named("Paul", "Paul"),
    _named("Peter", "Peter"),
    _named("Mr. Weber", "Herr Weber", "Herrn Weber"),
)
WOMEN = (
    _named("Anna", "Anna"),
    _named("Maria", "Maria"),
    _named("Mrs. Klein", "Frau Klein"),
)
NAMES = MEN + WOMEN
OBJECTS = {
    word: pronoun(word, accusative, dative)
    for word, accusative, dative in (
        ("me", "mich", "mir"), ("you", "dich", "dir"), ("him", "ihn", "ihm"),
        ("her", "sie", "ihr"), ("it", "es", "ihm"), ("us", "uns", "uns"),
        ("them", "sie", "ihnen"),
    )
}  # fmt: skip
CLASHES = frozenset(
    {("I", "me"), ("I", "us"), ("we", "us"), ("we", "me"), ("you", "you")}
)
"""Who would have to do it to themselves."""


def _addressee(name: str, german: str, you: str, person: str) -> Nominal:
    phrase = Phrase("you", (you,) * 3, person, vocative=(name, german))
    return Nominal(name, fixed=(phrase,))


ADDRESSED = (
    _addressee("Anna", "Anna", "du", "2s"),
    _addressee("Paul", "Paul", "du", "2s"),
    _addressee("Mr. Weber", "Herr Weber", "Sie", "3p"),
    _addressee("Mrs. Klein", "Frau Klein", "Sie", "3p"),
    _addressee("Anna and Paul", "Anna und Paul", "ihr", "2p"),
    _addressee("children", "Kinder", "ihr", "2p"),
)
PERSONS = of_classes((lexicon.PEOPLE, lexicon.FAMILY, lexicon.PARENTS, lexicon.CROWDS))
PEOPLE = of_classes((lexicon.PEOPLE,))
_RELATIVES = of_classes((lexicon.FAMILY,))
_MASCULINE = tuple(n for n in _RELATIVES if n.noun and n.noun.german.gender == "m")
_FEMININE = tuple(n for n in _RELATIVES if n.noun and n.noun.german.gender == "f")
_OF_MEN = """teacher der Lehrer Lehrer, doctor der Arzt Ärzte,
    baker der Bäcker Bäcker, student der* Student Studenten, singer der Sänger Sänger,
    artist der Künstler Künstler, farmer der* Bauer Bauern, driver der Fahrer Fahrer"""
_OF_WOMEN = """teacher die Lehrerin Lehrerinnen, doctor die Ärztin
    Ärztinnen, baker die Bäckerin Bäckerinnen, student die Studentin Studentinnen,
    singer die Sängerin Sängerinnen, artist die Künstlerin Künstlerinnen, farmer die
    Bäuerin Bäuerinnen, driver die Fahrerin Fahrerinnen, nurse die Krankenschwester
    Krankenschwestern, actress die Schauspielerin Schauspielerinnen"""
"""What a woman is called who is one of these: only after "she is", "Anna is", …"""


_QUALITIES = (
    "good=gut bad=schlecht young=jung old=alt famous=berühmt friendly=freundlich"
)


def _professions(nouns: str, *, plural: bool) -> tuple[Nominal, ...]:
    """Makes "a teacher", which is Lehrer without an article, and "a good teacher"."""
    kind = lexicon.noun_class(OF_PEOPLE, _QUALITIES, nouns)
    determiner = NONE_PLURAL if plural else A
    made = []
    for noun in kind.nouns:
        plain = noun_phrase(determiner, (), noun)
        word = noun.german.plural if plural else noun.german.singular
        qualified = (
            noun_phrase(determiner, (quality,), noun) for quality in kind.adjectives
        )
        phrases = (*6 * (plain._replace(german=(word,) * 3),), *qualified)
        made.append(Nominal(noun.english, fixed=phrases))
    return tuple(made)


PROFESSIONS = _professions(_OF_MEN, plural=False)
PROFESSIONS_OF_WOMEN = _professions(_OF_WOMEN, plural=False)
PROFESSIONS_OF_MANY = _professions(_OF_MEN, plural=True)
MALE_RELATIVES = tuple(n.of_number(plural=False) for n in _MASCULINE)
FEMALE_RELATIVES = tuple(n.of_number(plural=False) for n in _FEMININE)
HIM = (*2 * (HE,), *MEN, *MALE_RELATIVES)
"""Of whom a teacher is ein Lehrer."""

HER = (*2 * (SHE,), *WOMEN, *FEMALE_RELATIVES)
"""Of whom a teacher is eine Lehrerin."""
