"""What a corpus is, and corpora made of others: weighted mixtures, and slices."""

from __future__ import annotations

import dataclasses
import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Protocol, TypeVar

from t2t_jax.data.config import SIDES
from t2t_jax.data.files.lines import LineProblems
from t2t_jax.data.vocabulary.tokenizers import Tagged, tag_piece
from t2t_jax.errors import ConfigError, DataError

Item = TypeVar("Item")


class Corpus(Protocol):
    """Sentence pairs that can be read repeatedly, always the same."""

    @property
    def spec(self) -> str:
        """The corpus's name, as configured."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Streams (source, target)."""

    def num_pairs(self) -> int:
        """Counts the pairs."""

    def fingerprint(self) -> str:
        """Returns a hash of the content."""


def spec_error(key: str, spec: str, rule: str) -> ConfigError:
    """Returns the error of a configured corpus that breaks a rule."""
    return ConfigError(f"{key}={spec!r} must {rule}. Change config.{key}.")


class Part(NamedTuple):
    """One corpus of a mixture.

    Attributes:
      weight: how often each pair is seen in an epoch: 2.5 means twice, and a random
        half of them, sampled anew each epoch, once more.
    """

    corpus: Corpus
    weight: float


@dataclass(frozen=True)
class MixtureCorpus:
    """Concatenated corpora, each pair once; the parts are not mixtures."""

    spec: str
    parts: tuple[Part, ...]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        problems = LineProblems()
        for corpus, _ in self.parts:
            try:
                yield from (pair for pair in corpus if not problems.count)
            except DataError as error:
                problems.add(*error.problems)
                problems.count += error.unlisted
        problems.raise_if_any()

    def num_pairs(self) -> int:
        """Sums the pairs of all parts, without weights."""
        return sum(corpus.num_pairs() for corpus, _ in self.parts)

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the parts' fingerprints, without weights."""
        parts = " ".join(corpus.fingerprint() for corpus, _ in self.parts)
        return hashlib.sha256(f"mixture {parts}".encode()).hexdigest()


@dataclass(frozen=True)
class DerivedCorpus:
    """Another corpus, read differently."""

    spec: str
    base: Corpus

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.base)

    def num_pairs(self) -> int:
        """Counts the pairs."""
        return self.base.num_pairs()

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the base corpus's fingerprint and how it is read."""
        name = self.made_of(self.base.fingerprint())
        return hashlib.sha256(name.encode()).hexdigest()

    def made_of(self, base: str) -> str:
        """Returns what decides the content, with the fingerprint of the base."""
        return base


@dataclass(frozen=True)
class SliceCorpus(DerivedCorpus):
    """The pairs `start` to `stop` - 1 of another corpus."""

    start: int
    stop: int

    def __iter__(self) -> Iterator[tuple[str, str]]:
        number = -1
        # Iterate past the slice: the base corpus raises its faults, such as sides of
        # unequal length, only at its end.
        for number, pair in enumerate(self.base):
            if self.start <= number < self.stop:
                yield pair
        if number < self.start:
            raise DataError(
                f"{self.spec} begins after the last of {number + 1:,} pairs. If the "
                f"{self.start:,} are held out, lower config.data.dev_pairs, or pass "
                "other pairs to t2t_jax.train as dev=; else choose another corpus."
            )

    def num_pairs(self) -> int:
        """Counts the pairs of the slice."""
        return max(min(self.base.num_pairs(), self.stop) - self.start, 0)

    def made_of(self, base: str) -> str:
        """Returns what decides the content, with the fingerprint of the base."""
        return f"slice {base} {self.start} {self.stop}"


@dataclass(frozen=True)
class TaggedCorpus(DerivedCorpus):
    """Another corpus with a tag before each source: `<BT> A dog`.

    Source: tagged back-translation, Caswell et al. 2019 (arXiv 1906.06442).
    """

    tag: str

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for source, target in self.base:
            yield f"{self.tag} {source}" if source.strip() else source, target

    def made_of(self, base: str) -> str:
        """Returns what decides the content, with the fingerprint of the base."""
        return f"tagged {self.tag} {base}"


@dataclass(frozen=True)
class DirectedCorpus(DerivedCorpus):
    """Another corpus in a direction that is named: its sources get the target's tag.

    The pairs are those of the text; the tags are added where they are encoded.

    Attributes:
      direction: the languages of its sources and targets.
      is_reversed: whether they are the targets and the sources of `base`.
      tag: with which sources are read, as text: "" for none.
    """

    direction: tuple[str, str]
    is_reversed: bool = False
    tag: str = ""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for source, target in self.base:
            if self.is_reversed:
                source, target = target, source
            yield self.tag + source if source.strip() else source, target

    def made_of(self, base: str) -> str:
        """Returns what decides the content, with the fingerprint of the base."""
        order = "reversed" if self.is_reversed else "as it is"
        return f"to {self.direction[1]} {order} {base}"


def layers_of(corpus: Corpus) -> Iterator[Corpus]:
    """Yields a corpus, what it is derived from, and so on; the text itself last."""
    yield corpus
    while isinstance(corpus, DerivedCorpus):
        corpus = corpus.base
        yield corpus


def direction_of(corpus: Corpus) -> tuple[str, str]:
    """Returns the languages of a corpus that names them; "" and "" of another."""
    return corpus.direction if isinstance(corpus, DirectedCorpus) else ("", "")


def languages_of(corpus: Corpus) -> tuple[str, str]:
    """Returns the languages of both sides; of a corpus without, source and target."""
    direction = direction_of(corpus)
    return direction if any(direction) else SIDES


def sample_evenly(items: Iterable[Item], most: int) -> list[Item]:
    """Samples at most so many items, at equal distances, of a stream of any length.

    Example:
      >>> sample_evenly(range(10), most=3)
      [0, 4, 8]
    """
    kept, step = [], 1
    for number, item in enumerate(items):
        if number % step == 0:
            kept.append(item)
            if len(kept) > most:
                kept, step = kept[::2], 2 * step
    return kept


def tag_of(corpus: Corpus) -> str:
    """Returns the tag that the sources of a corpus begin with as text; "" for none."""
    layers = layers_of(corpus)
    return next((one.tag for one in layers if isinstance(one, TaggedCorpus)), "")


def directions_of(corpus: Corpus) -> tuple[tuple[str, str], ...]:
    """Returns the languages that the parts of a corpus name, each direction once.

    Example:
      >>> from t2t_jax.data.corpora.open import open_corpus
      >>> directions_of(open_corpus("phrasebook:dev:7#en-de,de-en"))
      (('en', 'de'), ('de', 'en'))
    """
    found = dict.fromkeys(direction_of(part) for part, _ in parts_of(corpus))
    return tuple(pair for pair in found if any(pair))


def directions_of_pairs(corpus: Corpus) -> list[str]:
    """Returns the direction of each pair, such as en-de; "" of those that name none.

    Example:
      >>> from t2t_jax.data.corpora.open import open_corpus
      >>> directions_of_pairs(open_corpus("phrasebook:dev:2#en-de,de-en"))
      ['en-de', 'en-de', 'de-en', 'de-en']
    """
    found: list[str] = []
    for part, _ in parts_of(corpus):
        found += ["-".join(filter(None, direction_of(part)))] * part.num_pairs()
    return found


def weights_by_size(
    parts: Sequence[Part], pairs: Sequence[int], *, temperature: float
) -> tuple[float, ...]:
    """Returns the weights of parts; with a temperature above 1, by their sizes.

    Parts of one direction count together: their share of what is seen is proportional
    to size^(1/T), and the largest has weight 1.

    Source: temperature-based sampling, Arivazhagan et al. 2019 (arXiv 1907.05019).

    Args:
      pairs: of each part.

    Example:
      >>> from t2t_jax.data.corpora.open import open_corpus
      >>> parts = parts_of(open_corpus("phrasebook:train:400++phrasebook:dev:100"))
      >>> weights_by_size(parts, [400, 100], temperature=2)
      (1.0, 2.0)
    """
    if temperature == 1:
        return tuple(part.weight for part in parts)
    directions = enumerate(direction_of(part) for part, _ in parts)
    groups = [one if any(one) else number for number, one in directions]
    sizes: Counter[object] = Counter()
    for group, size in zip(groups, pairs, strict=True):
        sizes[group] += size
    largest, power = max(sizes.values()), 1 - 1 / temperature
    return tuple((largest / max(1, sizes[group])) ** power for group in groups)


def with_tags(corpus: Corpus, tagged: Tagged) -> Corpus:
    """Returns a corpus whose sources are read with their tags, as lines to translate.

    Args:
      tagged: the vocabulary of the sources; a tag names the source too, `>>en-de<<`, if
        it reads that.

    Example:
      >>> from types import SimpleNamespace
      >>> from t2t_jax.data.corpora.open import open_corpus
      >>> corpus, tagged = open_corpus("phrasebook:dev:7#en-de"), SimpleNamespace()
      >>> tagged.reads_source = False
      >>> next(iter(with_tags(corpus, tagged)))[0][:6]
      '>>de<<'
    """
    if isinstance(corpus, DirectedCorpus):
        tag = "-".join(corpus.direction[not tagged.reads_source :])
        return dataclasses.replace(corpus, tag=f"{tag_piece(tag)} ")
    if isinstance(corpus, MixtureCorpus):
        parts = (Part(with_tags(part, tagged), weight) for part, weight in corpus.parts)
        return MixtureCorpus(corpus.spec, tuple(parts))
    return corpus


def parts_of(corpus: Corpus) -> tuple[Part, ...]:
    """Returns the parts of a corpus, in order; without a mixture, one of weight 1.

    Example:
      >>> from t2t_jax.data.corpora.open import open_corpus
      >>> corpus = open_corpus("phrasebook:dev:7++2*phrasebook:test:5[:3]")
      >>> [(part.corpus.spec, part.weight) for part in parts_of(corpus)]
      [('phrasebook:dev:7', 1.0), ('phrasebook:test:5[:3]', 2.0)]
    """
    return corpus.parts if isinstance(corpus, MixtureCorpus) else (Part(corpus, 1.0),)


class PairLocation(NamedTuple):
    """A corpus or one of its files, and a line, from 1."""

    corpus: str
    line: int


def locator(corpus: Corpus) -> Callable[[int], PairLocation]:
    """Returns a function that finds the file and line of a pair by its number, from 1.

    Through slices and mixtures, whose parts are counted once.

    Raises:
      UserError: the corpus can no longer be read.
    """
    if isinstance(corpus, DerivedCorpus):
        of_base = locator(corpus.base)
        start = corpus.start if isinstance(corpus, SliceCorpus) else 0
        return lambda number: of_base(start + number)
    if isinstance(corpus, MixtureCorpus):
        parts = [locator(part) for part, _ in corpus.parts]
        counts = [part.num_pairs() for part, _ in corpus.parts[:-1]]
        ends = list(accumulate(counts, initial=0))

        def locate(number: int) -> PairLocation:
            part = bisect_left(ends, number) - 1
            return parts[part](number - ends[part])

        return locate
    return lambda number: PairLocation(corpus.spec, number)


def truncate(text: str, most: int = 80, *, showing: int = 0) -> str:
    """Truncates an example or a name, so that it has the character `showing`.

    Example:
      >>> truncate("From Monday on: 9", 8), truncate("From Monday on: 9", 8, showing=16)
      ('From Mo…', '…on: 9')
    """
    if showing >= most - 1 and len(text) > most:
        text = f"…{text[showing - most // 2 :]}"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short_name(spec: str) -> str:
    """Truncates the name of a corpus for a message: a spec may list many files."""
    return truncate(spec, 300)
