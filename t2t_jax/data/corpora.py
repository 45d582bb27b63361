"""Where sentence pairs come from: a corpus is named by a prefix and what follows it.

==================================  ==================================================
`phrasebook:SPLIT:COUNT`            the embedded English-German corpus
`text:SOURCE,TARGET`                two files, aligned line by line, plain or .gz
==================================  ==================================================

Either may end in a slice: `text:all.en,all.de[1000:]` leaves the first 1,000 pairs out,
`[:1000]` is those.

Iterating over a corpus checks it: what is wrong with its text is raised at the end of
the pass, all of it together, and nothing is yielded after the first broken line.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Protocol

from t2t_jax.data.lines import (
    LineProblems,
    checked_lines,
    require_files,
)
from t2t_jax.errors import ConfigError, DataError

_SLICE = re.compile(r"(?P<whole>.*)\[(?P<start>\d*):(?P<stop>\d*)\]")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


class Corpus(Protocol):
    """Sentence pairs that can be read again and again, always the same."""

    @property
    def spec(self) -> str:
        """The corpus's name, as configured."""
        ...

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Streams (source, target)."""
        ...

    def fingerprint(self) -> str:
        """Returns a hash of the content, equal only where the pairs are."""
        ...


def open_corpus(spec: str, *, key: str = "data.train") -> Corpus:
    """Finds the corpus that a configuration names.

    Args:
      spec: prefix, colon, and what the prefix asks for.
      key: the configuration key it comes from, for the messages.

    Returns:
      The corpus, whose files are known to be there.

    Raises:
      ConfigError: the spec cannot be understood.
      InputMissingError: a file is not there or cannot be read.
    """
    if part := _SLICE.fullmatch(spec):
        start, stop = int(part["start"] or 0), int(part["stop"] or sys.maxsize)
        if start >= stop:
            raise ConfigError(f"{key}={spec!r} is an empty slice. Change config.{key}.")
        return SliceCorpus(spec, open_corpus(part["whole"], key=key), start, stop)
    prefix, colon, rest = spec.partition(":")
    if not colon or prefix not in _KINDS:
        known = ", ".join(f"{name}:" for name in _KINDS)
        raise ConfigError(
            f"{key}={spec!r} must begin with one of {known}. Change config.{key}."
        )
    return _KINDS[prefix](spec, rest, key)


@dataclass(frozen=True)
class TextCorpus:
    """Two aligned files.

    Attributes:
      spec: the corpus's name, as configured.
      source: file of the sentences to translate.
      target: file of their translations.
    """

    spec: str
    source: Path
    target: Path

    def __iter__(self) -> Iterator[tuple[str, str]]:
        problems = LineProblems()
        counts = [0, 0]
        sides = (checked_lines(path, problems) for path in (self.source, self.target))
        missing = object()
        for pair in zip_longest(*sides, fillvalue=missing):
            counts[0] += pair[0] is not missing
            counts[1] += pair[1] is not missing
            source, target = pair
            if not problems.count and isinstance(source, str):
                if isinstance(target, str):
                    yield source, target
        self._compare(counts, problems)
        problems.raise_if_any()

    def _compare(self, counts: list[int], problems: LineProblems) -> None:
        if problems.cut_short:
            return
        if counts[0] != counts[1]:
            problems.add(
                f"{self.source} has {counts[0]} lines and {self.target} has "
                f"{counts[1]}: the two sides must be aligned line by line."
            )
        elif not counts[0]:
            problems.add(f"{self.source} and {self.target} are empty.")

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the two files' bytes."""
        both = hashlib.sha256(b"text")
        for path in (self.source, self.target):
            with path.open("rb") as file:
                both.update(hashlib.file_digest(file, "sha256").digest())
        return both.hexdigest()


@dataclass(frozen=True)
class PhrasebookCorpus:
    """The embedded English-German corpus, which needs no files.

    Attributes:
      spec: the corpus's name, as configured.
      split: which of its disjoint parts.
      count: number of pairs.
    """

    spec: str
    split: str
    count: int

    def __iter__(self) -> Iterator[tuple[str, str]]:
        from t2t_jax.data import phrasebook

        return iter(phrasebook.sentence_pairs(self.split, self.count))

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the grammar's own fingerprint, split and count."""
        from t2t_jax.data import phrasebook

        name = f"phrasebook {phrasebook.fingerprint()} {self.split} {self.count}"
        return hashlib.sha256(name.encode()).hexdigest()


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
        for number, pair in enumerate(islice(self.whole, self.stop)):
            if number >= self.start:
                yield pair
        if number < self.start:
            raise DataError(
                f"{self.spec} begins after the last of {number + 1} pairs. Lower the "
                f"{self.start}, or name another corpus."
            )

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the whole's fingerprint and the bounds."""
        name = f"slice {self.whole.fingerprint()} {self.start} {self.stop}"
        return hashlib.sha256(name.encode()).hexdigest()


def _open_text(spec: str, rest: str, key: str) -> Corpus:
    paths = rest.split(",")
    if len(paths) != 2 or not all(paths):
        raise ConfigError(
            f"{key}={spec!r} must name two files, text:SOURCE,TARGET. "
            f"Change config.{key}."
        )
    source, target = (_expand(path, spec, key) for path in paths)
    require_files(source, target, change=f"config.{key}")
    return TextCorpus(spec, source, target)


def _expand(path: str, spec: str, key: str) -> Path:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            raise ConfigError(
                f"{key}={spec!r} needs the environment variable {name}, which is not "
                f"set. Set {name} or change config.{key}."
            )
        return os.environ[name]

    return Path(_VARIABLE.sub(value, path)).expanduser()


def _open_phrasebook(spec: str, rest: str, key: str) -> Corpus:
    from t2t_jax.data import phrasebook

    split, _, count = rest.partition(":")
    if split not in phrasebook.SPLITS or not re.fullmatch("[1-9][0-9]*", count):
        known = ", ".join(phrasebook.SPLITS)
        raise ConfigError(
            f"{key}={spec!r} must be phrasebook:SPLIT:COUNT with a split of {known} "
            f"and a count of at least 1. Change config.{key}."
        )
    return PhrasebookCorpus(spec, split, int(count))


_KINDS: Mapping[str, Callable[[str, str, str], Corpus]] = {
    "phrasebook": _open_phrasebook,
    "text": _open_text,
}
