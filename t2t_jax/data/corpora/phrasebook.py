"""The embedded English-German corpus: sentences of a grammar, shipped as one file.

tools/phrasebook in the repository generates it, and says what `dev` and `test` hold
out: combinations of subject, verb and complement, whose words are all trained on.
"""

from __future__ import annotations

import functools
import hashlib
import io
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import accumulate, islice
from typing import NamedTuple

from t2t_jax.data.corpora.corpus import spec_error
from t2t_jax.errors import ConfigError

SIZES = {"dev": 500, "test": 5_000, "train": 120_000}
"""Pairs of each split, in the order of the file."""
FINGERPRINT = "4917a8231112bb90c5dd393b36a5c114492964c6cb2fb06c1cc2cd37842e45a6"
"""SHA-256 of the generator's version and first pairs; another text needs another."""

_FILES = resources.files("t2t_jax.data.corpora")


_STARTS = dict(zip(SIZES, accumulate(SIZES.values(), initial=0), strict=False))


class Example(NamedTuple):
    """A sentence and its translation."""

    english: str
    german: str


@functools.cache
def examples() -> tuple[Example, ...]:
    """Returns sentences of combinations that are not in the training text.

    The README, the demo, the prompt and the model cards use them.

    Example:
      >>> examples()[0].english
      'The old teacher reads a book.'
    """
    text = (_FILES / "phrasebook_examples.tsv").read_text(encoding="utf-8")
    return tuple(Example(*line.split("\t")) for line in text.splitlines())


@dataclass(frozen=True)
class PhrasebookCorpus:
    """The first pairs of a split."""

    spec: str
    split: str
    count: int

    def __iter__(self) -> Iterator[tuple[str, str]]:
        start = _STARTS[self.split]
        with (_FILES / "phrasebook.tsv.xz").open("rb") as packed:
            lines = io.TextIOWrapper(lzma.open(packed), encoding="utf-8", newline="\n")
            for line in islice(lines, start, start + self.count):
                source, target = line[:-1].split("\t")
                yield source, target

    def num_pairs(self) -> int:
        """Returns the requested number; nothing is read."""
        return self.count

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the text's fingerprint, split and count."""
        name = f"phrasebook {FINGERPRINT} {self.split} {self.count}"
        return hashlib.sha256(name.encode()).hexdigest()


def open_phrasebook(spec: str, rest: str, *, key: str) -> PhrasebookCorpus:
    """Opens `phrasebook:SPLIT:COUNT`.

    Raises:
      ConfigError: the split is unknown, or it has fewer pairs.
    """
    split, _, count = rest.partition(":")
    if split not in SIZES or not re.fullmatch("[1-9][0-9]{,8}", count):
        rule = f"be phrasebook:SPLIT:COUNT with a split of {', '.join(sorted(SIZES))}"
        raise spec_error(key, spec, f"{rule} and a count of at least 1")
    if int(count) > SIZES[split]:
        raise ConfigError(
            f"{key}={spec!r}: the phrasebook has {SIZES[split]} pairs of {split}, not "
            f"{count}. Ask for at most {SIZES[split]}, or make more in a clone: python "
            f"tools/phrasebook/generate.py {split} {count} FILE, and tsv:FILE."
        )
    return PhrasebookCorpus(spec, split, int(count))
