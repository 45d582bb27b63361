"""The ways in which people type a sentence, beside the proper one.

Some type "don't" for "do not", some no capital letters, some no full stop. A part of
the corpus is typed so; its German stays proper, but for the mark that is not there.
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
_CONTRACTED = 3  # of so many sentences that can be contracted, one is
_CARELESS = 24  # of so many sentences, one has neither capitals nor a mark, one no mark


def contracted(english: str) -> str:
    """Contracts what can be.

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
    """Types a sentence, mostly as it should be.

    Args:
      pair: the English and the German sentence.

    Returns:
      Both, the English as it may be typed. Other sentences come out other.
    """
    english, german = pair
    if choices.below(_CONTRACTED) == 0:
        english = contracted(english)
    care = choices.below(_CARELESS)
    if care > 1:
        return english, german
    if care == 0:
        english = english.lower()
    return english.rstrip(".?!"), german.rstrip(".?!")
