"""Runs that several files read, trained once for all workers of pytest-xdist."""

from itertools import product

import pytest

from tests.exchange.exporting.counting import write_text
from tests.integration import tiny
from tests.made_once import made_once

_WHO = (("A man", "Ein Mann"), ("A woman", "Eine Frau"), ("A child", "Ein Kind"))
_WHEN = (("today", "heute"), ("at night", "nachts"), ("often", "oft"))


def _train(path, corpus, **changed):
    keys = {
        "data__train": corpus,
        "data__dev": corpus,
        "evaluation__every_steps": 100_000,  # the last step alone
        "checkpoint__every_minutes": 0,
        "checkpoint__keep": 5,
        "optimizer__peak_learning_rate": 0.01,
    }
    tiny.succeed(*tiny.arguments(path, **keys | changed))


@pytest.fixture(scope="session")
def counting(shared_directory):
    """A run that has learnt to count in German, beside its text `a.en` and `a.de`.

    Its translations are text again. It has checkpoints of steps 100 and 200.
    """

    def train(place):
        _train(
            place / "run",
            write_text(place),
            steps=200,
            vocabulary__size=44,
            model__dropout=0.0,
            optimizer__warmup_steps=50,
            checkpoint__every_steps=100,
            decoding__max_source_length=24,
        )

    return made_once(shared_directory / "counting", train) / "run"


@pytest.fixture(scope="session")
def newspaper(shared_directory):
    """A run on sentences so alike that a few steps lead to some that score.

    Beside it the nine pairs, `en` and `de`. Its periodic checkpoints are of steps 11,
    22, 33, 44 and 55; its path has a space and an umlaut.
    """

    def train(place):
        pairs = list(product(_WHO, _WHEN))
        sides = {
            "en": [f"{who} reads a newspaper {when}." for (who, _), (when, _) in pairs],
            "de": [
                f"{who} liest {when} in aller Ruhe eine lange Zeitung."
                for (_, who), (_, when) in pairs
            ],
        }
        for name, lines in sides.items():
            text = "".join(f"{line}\n" for line in lines)
            (place / name).write_text(text, encoding="utf-8")
            (place / f"train.{name}").write_text(text * 9, encoding="utf-8")
        _train(
            place / "über uns",
            f"text:{place / 'train.en'},{place / 'train.de'}",
            steps=57,
            data__dev=f"text:{place / 'en'},{place / 'de'}",
            vocabulary__size=70,
            optimizer__warmup_steps=20,
            optimizer__peak_learning_rate=0.02,
            evaluation__bleu_sentences=5,
            checkpoint__every_steps=11,
        )

    return made_once(shared_directory / "newspaper", train) / "über uns"
