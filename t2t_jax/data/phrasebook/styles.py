"""Informal spellings of English sentences.

Some users type "don't" for "do not", no capital letters, or no full stop. Part of the
corpus is spelt so; its German stays formal, but for a missing mark.
"""

from __future__ import annotations

import re

from t2t_jax.data.phrasebook.grammar.phrases import Words
from t2t_jax.data.phrasebook.order import Choices

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
    """Returns a pair with the English in a chosen spelling; injective."""
    english, german = pair
    if choices.below(_CONTRACTED) == 0:
        english = contracted(english)
    style = choices.below(_INFORMAL)
    if style > 1:
        return english, german
    if style == 0:
        english = english.lower()
    return english.rstrip(".?!"), german.rstrip(".?!")
