"""Corpora made of others: several read as one, and consecutive pairs of one."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.errors import DataError

if TYPE_CHECKING:
    from t2t_jax.data.corpora.open import Corpus, Part


@dataclass(frozen=True)
class MixtureCorpus:
    """Corpora one after the other, each of their pairs once.

    Attributes:
      spec: their names, as configured.
      parts: the corpora and their weights, none of them a mixture itself.
    """

    spec: str
    parts: tuple[Part, ...]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        problems = LineProblems()
        for corpus, _ in self.parts:
            try:
                for pair in corpus:
                    if not problems.count:
                        yield pair
            except DataError as error:
                for problem in error.problems:
                    problems.add(problem)
                problems.count += error.unlisted
        problems.raise_if_any()

    def num_pairs(self, *, budget: int = sys.maxsize) -> int:
        """Adds up the pairs of all parts, whatever their weights."""
        return sum(corpus.num_pairs(budget=budget) for corpus, _ in self.parts)

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the parts' fingerprints, whatever their weights."""
        parts = " ".join(corpus.fingerprint() for corpus, _ in self.parts)
        return hashlib.sha256(f"mixture {parts}".encode()).hexdigest()


@dataclass(frozen=True)
class SliceCorpus:
    """Consecutive pairs of another corpus.

    Attributes:
      spec: the corpus's name, as configured.
      whole: the other corpus.
      start: its first pair that belongs here, counted from 0.
      stop: its first pair after those.
    """

    spec: str
    whole: Corpus
    start: int
    stop: int

    def __iter__(self) -> Iterator[tuple[str, str]]:
        number = -1
        # Past the slice too: only at its end does the whole tell what is wrong with
        # it, as that its two sides are not equally long.
        for number, pair in enumerate(self.whole):
            if self.start <= number < self.stop:
                yield pair
        if number < self.start:
            raise DataError(
                f"{self.spec} begins after the last of {number + 1} pairs. Lower the "
                f"{self.start} (config.data.dev_pairs, if it holds pairs out), or name "
                "another corpus."
            )

    def num_pairs(self, *, budget: int = sys.maxsize) -> int:
        """Counts the pairs of the whole, and says how many of them are here."""
        whole = self.whole.num_pairs(budget=budget)
        return max(min(whole, self.stop) - self.start, 0)

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the whole's fingerprint and the bounds."""
        name = f"slice {self.whole.fingerprint()} {self.start} {self.stop}"
        return hashlib.sha256(name.encode()).hexdigest()


class PairLocation(NamedTuple):
    """Where a pair stands, as whoever looks for it finds it.

    Attributes:
      corpus: name of the corpus, or of the one of several files.
      line: its line there, from 1.
    """

    corpus: str
    line: int


def locate_pair(corpus: Corpus, number: int) -> PairLocation:
    """Finds the place of a pair, whatever the corpus was cut from or joined of.

    Args:
      number: of the pair, from 1.

    Raises:
      UserError: the corpus cannot be read any more.
    """
    if isinstance(corpus, SliceCorpus):
        return locate_pair(corpus.whole, corpus.start + number)
    if isinstance(corpus, MixtureCorpus):
        for part, _ in corpus.parts:
            if number <= (pairs := part.num_pairs()):
                return locate_pair(part, number)
            number -= pairs
    return PairLocation(corpus.spec, number)
