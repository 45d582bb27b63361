"""Example sentences of the phrasebook's model that are not in its training text.

The README, the demo, the prompt and the model cards use them, and a test translates
them with the demo's model. Their combinations are held out: the training text has no
sentence, in any tense or frame, in which a teacher reads a book.
"""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """A sentence, its translation, and its held-out combination."""

    english: str
    german: str
    combination: tuple[str, str, str]


EXAMPLES = (
    Example(
        "The old teacher reads a book.",
        "Der alte Lehrer liest ein Buch.",
        ("Lehrer", "lesen", "Buch"),
    ),
    Example(
        "I do not have a car.",
        "Ich habe kein Auto.",
        ("ich", "haben", "Auto"),
    ),
    Example(
        "Did the children eat the apples?",
        "Haben die Kinder die Äpfel gegessen?",
        ("Kind", "essen", "Apfel"),
    ),
    Example(
        "My sister is very tired.",
        "Meine Schwester ist sehr müde.",
        ("Schwester", "sein", "müde"),
    ),
    Example(
        "There is a small bird in the kitchen.",
        "In der Küche ist ein kleiner Vogel.",
        ("", "sein", "Vogel"),
    ),
    Example(
        "Is there a hotel in this village?",
        "Gibt es in diesem Dorf ein Hotel?",
        ("", "sein", "Hotel"),
    ),
    Example(
        "Where are your new shoes?",
        "Wo sind deine neuen Schuhe?",
        ("Schuh", "sein", ""),
    ),
    Example(
        "She gave him a new key.",
        "Sie hat ihm einen neuen Schlüssel gegeben.",
        ("sie", "geben", "Schlüssel"),
    ),
    Example(
        "Our neighbor cannot swim.",
        "Unser Nachbar kann nicht schwimmen.",
        ("Nachbar", "schwimmen", ""),
    ),
    Example(
        "Please open the door!",
        "Mach bitte die Tür auf!",
        ("du", "aufmachen", "Tür"),
    ),
    Example(
        "Who is waiting for the bus?",
        "Wer wartet auf den Bus?",
        ("wer", "warten auf", "Bus"),
    ),
    Example(
        "What is Anna cooking?",
        "Was kocht Anna?",
        ("Anna", "kochen", "was"),
    ),
    Example(
        "We would like to drink a cup of coffee.",
        "Wir möchten eine Tasse Kaffee trinken.",
        ("wir", "trinken", "Tasse Kaffee"),
    ),
    Example(
        "My parents live in an old house.",
        "Meine Eltern wohnen in einem alten Haus.",
        ("Eltern", "wohnen in", "Haus"),
    ),
    Example(
        "This is my father's bicycle.",
        "Das ist das Fahrrad meines Vaters.",
        ("das", "sein", "Fahrrad"),
    ),
    Example(
        "Tomorrow the farmer will sell his horse.",
        "Morgen wird der Bauer sein Pferd verkaufen.",
        ("Bauer", "verkaufen", "Pferd"),
    ),
    Example(
        "I know that the doctor helped the sick girl.",
        "Ich weiß, dass der Arzt dem kranken Mädchen geholfen hat.",
        ("Arzt", "helfen", "Mädchen"),
    ),
)
"""The first of them is the README's."""
