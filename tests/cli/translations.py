"""Translations without a model: what a line becomes is seen from the line."""

from pathlib import Path

import numpy as np

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.translation.formats import make_formatter
from t2t_jax.cli.translation.job import TranslationJob
from t2t_jax.decoding.text.translation import EMPTY_TRANSLATION, Hypothesis, Translation
from t2t_jax.errors import DataError

TEXT = ["a", "", "bb", "c\u2028", "d", "e", "f"]
SPOKEN = ["0:A", "", "2:BB", "3:C\u2028", "4:D", "5:E", "6:F"]


def options_of(*argv):
    """Reads a command line that translates the file `in` with the model `run`."""
    return parse_argv(["--mode=translate", "--workdir=run", "--input=in", *argv])


def lines_of(name):
    """Reads what is between newlines."""
    return Path(name).read_bytes().decode().removesuffix("\n").split("\n")


def said(text, score=-1.0):
    """Makes a translation of two tokens, whose mean is the score."""
    sums = {"score": score, "log_probability": 2 * score, "num_tokens": 2}
    return Translation(hypotheses=(Hypothesis(text=text, ended=True, **sums),))


class Killed(BaseException):
    """Ends a job as a signal would, but for the process."""


class Loud:
    """A model that is its own translator: says the number and the line, loudly."""

    def __init__(self, bias=0.0):
        self.calls = []
        self.step, self.others, self.params = 7, (), {"bias": np.full(3, bias)}

    def iter_translations(self, lines, *, first=0, prefixes=None, terms=None, **_):
        """Answers the last line first, as batches are sorted otherwise."""
        self.calls.append((first, list(lines)))
        prefixes = prefixes or [""] * len(lines)
        terms = terms or [[]] * len(lines)
        assert len(prefixes) == len(terms) == len(lines)
        for number in reversed(range(len(lines))):
            text = f"{prefixes[number]}{first + number}:{lines[number].upper()}"
            text += "+".join(["", *terms[number]])
            yield number, said(text) if lines[number] else EMPTY_TRANSLATION

    def check_terms(self, terms, *, first=0):
        """Refuses the term "never"."""
        for number, line in enumerate(terms, start=first + 1):
            if "never" in line:
                raise DataError(f"Line {number}: never.")

    def warm_up(self, is_enough):
        """Has nothing to compile."""

    def with_row_growth(self, row_growth):
        """Has no batches."""
        return self

    def translations(self, lines, *, first=0, **_):
        found = dict(self.iter_translations(lines, first=first))
        return [found[number] for number in range(len(lines))]


def loader(loud):
    """Makes what stands in for `load_job`."""

    def load(options):
        joiner = options.config.data.subword_joiner
        return TranslationJob(loud, loud, make_formatter(options), joiner=joiner)

    return load
