"""Where sentence pairs come from: a corpus is named by a prefix and what follows it.

=====================================  ===============================================
`phrasebook:SPLIT:COUNT`               the embedded English-German corpus
`text:SOURCE,TARGET`                   two files, aligned line by line
`text:A.en+B.en,A.de+B.de`             several, each two of them aligned by themselves
`tsv:FILE`, `tsv:A+B`                  source, tab, target in every line
`tsv:FILE#3,1`                         the columns of source and target, from 1
`tfds:NAME/CONFIG:SPLIT`               a translation set of TensorFlow Datasets, in
                                       the direction of its name
`tfds:NAME/CONFIG:SPLIT:SOURCE-TARGET` the same, in the direction that is said
=====================================  ===============================================

Files are plain or .gz. All but `tfds:` may end in a slice: `text:all.en,all.de[1000:]`
leaves the first 1,000 pairs out, `[:1000]` is those, `[:1%]` the first hundredth. With
`tfds:` a slice belongs to the split and is written as TFDS has it: `train[:1%]:en-de`.

`++` joins corpora, and a number and `*` before one is its weight, from 0.001 to 1000:
how often each of its pairs is seen in an epoch.
`text:a.en,a.de++2*tsv:b.tsv++0.5*phrasebook:train:1000` sees those of b.tsv twice, and
half of the phrasebook's, drawn anew each epoch. Shells leave `++` and `+` alone; a `*`
or `[` on a command line wants quotes.

Iterating over a corpus checks it: what is wrong with its text is raised at the end of
the pass, all of it together, and nothing is yielded after the first broken line. That
of a slice checks the whole that it is cut from.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.mixture import MixtureCorpus, SliceCorpus
from t2t_jax.data.corpora.text_files import open_text, open_tsv
from t2t_jax.data.corpora.tfds import open_tfds
from t2t_jax.errors import Attempts, ConfigError

_KINDS = ("phrasebook", "text", "tfds", "tsv")
# A ++ inside a path, as in c++/news.en, has no prefix and colon behind it.
# What is no weight is let through before a prefix, to be told what a weight is.
_JOINT = re.compile(rf"\+\+(?=(?:[^:*/,]*\*)?[a-z]+:|[^:+/,]*(?:{'|'.join(_KINDS)}):)")
_WEIGHTED = re.compile(r"(?P<weight>[^:]*)\*(?P<name>[^:*]*:.*)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LEAST_WEIGHT, _MOST_WEIGHT = 0.001, 1000
_SLICE = re.compile(r"(?P<whole>.*)\[(?P<start>(?:\d+%?)?):(?P<stop>(?:\d+%?)?)\]")


class Corpus(Protocol):
    """Sentence pairs that can be read again and again, always the same."""

    @property
    def spec(self) -> str:
        """The corpus's name, as configured."""
        ...

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Streams (source, target)."""
        ...

    def num_pairs(self, *, budget: int = sys.maxsize) -> int:
        """Counts the pairs; DataError if that takes reading more bytes of a file."""
        ...

    def fingerprint(self) -> str:
        """Returns a hash of the content, equal only where the pairs are."""
        ...


class Part(NamedTuple):
    """One corpus of several.

    Attributes:
      corpus: its pairs.
      weight: how often each of them is seen in an epoch: 2.5 means twice, and half of
        them, drawn anew each epoch, once more.
    """

    corpus: Corpus
    weight: float


def parts_of(corpus: Corpus) -> tuple[Part, ...]:
    """Returns the corpora that a corpus is made of, in the order of its pairs.

    Args:
      corpus: any; one that is not made of others is one part of weight 1.

    Example:
      >>> corpus = open_corpus("phrasebook:dev:7++2*phrasebook:test:5[:3]")
      >>> [(part.corpus.spec, part.weight) for part in parts_of(corpus)]
      [('phrasebook:dev:7', 1.0), ('phrasebook:test:5[:3]', 2.0)]
    """
    return corpus.parts if isinstance(corpus, MixtureCorpus) else (Part(corpus, 1.0),)


def open_corpus(
    spec: str, *, key: str = "data.train", say: Callable[[str], None] | None = None
) -> Corpus:
    """Finds the corpus that a configuration names.

    Args:
      spec: prefix, colon, and what the prefix asks for; or several, with ++ between.
      key: the configuration key it comes from, for the messages.
      say: tells people what is downloaded and prepared where a set of TFDS is not
        there; None means that nothing is, and that its absence is an error.

    Returns:
      The corpus, whose files are known to be there.

    Raises:
      ConfigError: the spec cannot be understood.
      InputMissingError: a file is not there or cannot be read.
      UserError: a set of TFDS cannot be prepared.
    """
    attempts = Attempts()
    names = split_spec(spec) or [spec]
    parts: list[Part] = []
    for name in names:
        if say and attempts.have_failed and names_tfds(name):
            continue  # Nothing is downloaded for what cannot be opened anyway.
        parts.append(attempts.try_call(_open_part, name, key=key, say=say))
    attempts.raise_if_any_failed()
    if len(parts) == 1 and parts[0].weight == 1:
        return parts[0].corpus
    return MixtureCorpus(spec, _flat(parts))


def names_tfds(spec: str) -> bool:
    """Tells whether a set of TFDS is among the corpora that a spec names.

    Example:
      >>> names_tfds("text:a.en,a.de++2*tfds:wmt14_translate/de-en:train")
      True
    """
    return any(_without_weight(name).startswith("tfds:") for name in split_spec(spec))


def require_files(spec: str, *, key: str) -> None:
    """Checks all of a spec that can be checked without a download.

    Args:
      key: the configuration key it comes from, for the messages.

    Raises:
      ConfigError: the spec cannot be understood.
      InputMissingError: a file is not there or cannot be read.
    """
    attempts = Attempts()
    for name in split_spec(spec) or [spec]:
        if not names_tfds(name):
            attempts.try_call(_open_part, name, key=key, say=None)
    attempts.raise_if_any_failed()


def split_spec(spec: str) -> list[str]:
    """Returns the names between the ++ of a spec; none of an empty one.

    Example:
      >>> split_spec("text:c++/a.en,c++/a.de++2*tsv:b")
      ['text:c++/a.en,c++/a.de', '2*tsv:b']
    """
    return _JOINT.split(spec) if spec else []


def train_and_dev(config: DataConfig) -> tuple[str, str]:
    """Returns the specs of the training and the development corpus.

    Args:
      config: names them, or says how many pairs of `train` to hold out.

    Returns:
      (train, dev); "" where there is no development corpus.

    Raises:
      ConfigError: no pairs can be held out of the training corpus.

    Example:
      >>> train_and_dev(DataConfig(train="text:a.en,a.de", dev_pairs=1_000))
      ('text:a.en,a.de[1000:]', 'text:a.en,a.de[:1000]')
    """
    pairs = config.dev_pairs
    if config.dev or not pairs:
        return config.train, config.dev
    first, *others = split_spec(config.train) or [""]
    name = _without_weight(first)
    if _SLICE.fullmatch(name) or name.startswith("tfds:"):
        raise ConfigError(
            f"Cannot hold data.dev_pairs={pairs} out of {name!r}: it is a slice or a "
            "set of TFDS. Set config.data.dev, and config.data.dev_pairs=0."
        )
    return "++".join([f"{first}[{pairs}:]", *others]), f"{name}[:{pairs}]"


def _without_weight(name: str) -> str:
    part = _WEIGHTED.fullmatch(name)
    return part["name"] if part else name


def _flat(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Puts the files of a corpus of several in its place, with the corpus's weight."""
    return tuple(
        Part(inner.corpus, outer.weight)
        for outer in parts
        for inner in parts_of(outer.corpus)
    )


def _open_part(name: str, *, key: str, say: Callable[[str], None] | None) -> Part:
    weight = 1.0
    if part := _WEIGHTED.fullmatch(name):
        number = part["weight"]
        weight = float(number) if _NUMBER.fullmatch(number) else 0.0
        if not _LEAST_WEIGHT <= weight <= _MOST_WEIGHT:
            raise ConfigError(
                f"{key}: {name!r} must be prefixed by a weight from {_LEAST_WEIGHT} to "
                f"{_MOST_WEIGHT} and *, such as 0.5*{part['name']}. "
                f"Change config.{key}."
            )
        name = part["name"]
    return Part(_open_one(name, key=key, say=say), weight)


def _open_one(spec: str, *, key: str, say: Callable[[str], None] | None) -> Corpus:
    prefix, colon, rest = spec.partition(":")
    if not colon or prefix not in _KINDS:
        known = ", ".join(f"{kind}:" for kind in _KINDS)
        raise ConfigError(
            f"{key}={spec!r} must begin with one of {known}. Change config.{key}."
        )
    if prefix == "tfds":
        return open_tfds(spec, rest, key=key, say=say)
    if part := _SLICE.fullmatch(spec):
        whole = _open_one(part["whole"], key=key, say=say)
        return _slice(whole, spec, part["start"], part["stop"], key=key)
    if prefix == "phrasebook":
        return _open_phrasebook(spec, rest, key=key)
    opened = (open_text if prefix == "text" else open_tsv)(spec, rest, key=key)
    if len(opened) == 1:
        return opened[0]
    return MixtureCorpus(spec, tuple(Part(corpus, 1.0) for corpus in opened))


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
        from t2t_jax.data.phrasebook import corpus as phrasebook

        return iter(phrasebook.sentence_pairs(self.split, self.count))

    def num_pairs(self, *, budget: int = sys.maxsize) -> int:
        """Returns the number that was asked for; nothing is read."""
        del budget
        return self.count

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the grammar's own fingerprint, split and count."""
        from t2t_jax.data.phrasebook import corpus as phrasebook

        name = f"phrasebook {phrasebook.fingerprint()} {self.split} {self.count}"
        return hashlib.sha256(name.encode()).hexdigest()


def _slice(whole: Corpus, spec: str, start: str, stop: str, *, key: str) -> Corpus:
    """Cuts a slice out; hundredths are of the pairs that there are, rounded."""
    total = whole.num_pairs() if "%" in start + stop else 0

    def bound(text: str) -> int:
        return round(total * int(text[:-1]) / 100) if "%" in text else int(text)

    first, last = bound(start or "0"), bound(stop or str(sys.maxsize))
    if first >= last:
        of = f" of {total:,} pairs" if total else ""
        raise ConfigError(f"{key}={spec!r} is an empty slice{of}. Change config.{key}.")
    return SliceCorpus(spec, whole, first, last)


def _open_phrasebook(spec: str, rest: str, *, key: str) -> Corpus:
    from t2t_jax.data.phrasebook import corpus as phrasebook

    split, _, count = rest.partition(":")
    if split not in phrasebook.SPLITS or not re.fullmatch("[1-9][0-9]*", count):
        known = ", ".join(phrasebook.SPLITS)
        raise ConfigError(
            f"{key}={spec!r} must be phrasebook:SPLIT:COUNT with a split of {known} "
            f"and a count of at least 1. Change config.{key}."
        )
    return PhrasebookCorpus(spec, split, int(count))
