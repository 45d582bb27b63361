"""Verbs of the phrasebook: their two languages, and their complements."""

from __future__ import annotations

from typing import NamedTuple

from t2t_jax.data.phrasebook.grammar.english import EnglishVerb, english_verb
from t2t_jax.data.phrasebook.grammar.german_verbs import GermanVerb, german_verb
from t2t_jax.data.phrasebook.grammar.lexicon import FAMILY, PARENTS, PEOPLE, NounClass


class Verb(NamedTuple):
    """A verb in both languages, and what it can be about.

    Attributes:
      english: the English verb.
      german: the German verb.
      complements: the classes of its complement.
      phrases: complements that are not of a class, as (English, German): "at home";
        the German of what is denied by it begins with "kein": "keine Musik".
      pronouns: which pronouns it takes: "me him it", or "".
      is_state: whether it has neither a progressive nor an imperative: "know".
    """

    english: EnglishVerb
    german: GermanVerb
    complements: tuple[NounClass, ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    pronouns: str = ""
    is_state: bool = False

    @property
    def name(self) -> str:
        """The English verb with its particle: "look for"."""
        return f"{self.english.base} {self.english.particle}".rstrip()


def make_verb(
    english: str, german: str, *complements: NounClass, governs: str = "acc",
    phrases: str = "", pronouns: str = "", is_state: bool = False,
) -> Verb:  # fmt: skip
    """Makes a verb of two dictionary entries.

    Args:
      english: the infinitive and its particle; behind a colon, if they are irregular,
        the past and the third person of the present: "go to: went goes".
      german: the infinitive, a separable prefix cut off by "|"; behind a colon the stem
        of du and er where its vowel changes ("-" where it does not), "ist" if its
        perfect is made with sein, and the participle if it is irregular:
        "ab|fahren: fähr ist gefahren".
      complements: the classes of its complement.
      governs: "acc", "dat", or a preposition and one of them: "auf acc".
      phrases: complements that are not of a class: "at home=zu Hause, =", where
        nothing at all is a complement too.

    Returns:
      The verb.
    """
    words, _, forms = english.partition(": ")
    past, _, third = forms.partition(" ")
    infinitive, _, german_forms = german.partition(": ")
    changed, *others = german_forms.split() or [""]
    pairs = (entry.strip().split("=") for entry in phrases.split(",") if entry)
    return Verb(
        english_verb(words, past, third),
        german_verb(
            infinitive,
            changed=changed.strip("-"),
            participle="".join(form for form in others if form != "ist"),
            auxiliary="sein" if "ist" in others else "haben",
            governs=governs,
        ),
        complements,
        tuple((there, here) for there, here in pairs),
        pronouns,
        is_state,
    )


PERSONS = (PEOPLE, FAMILY, PARENTS)
ANYBODY = "me you him her us them"
THEM = "it them"
LANGUAGES = """German=kein Deutsch, English=kein Englisch, French=kein Französisch,
    Spanish=kein Spanisch"""
CITIES = "Berlin=Berlin, Hamburg=Hamburg, London=London, Paris=Paris, Vienna=Wien"
