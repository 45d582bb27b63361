"""Text becomes tokens once: memory-mapped ids and offsets on disk.

A cache is a directory named by a hash of all that it depends on. It is built in
another, `NAME.building`, and renamed, so a reader finds it whole or not at all, whoever
else writes or dies; whoever asks for it while it is built waits for it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.batching.packing import Integers
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.mixture import PairLocation, locate_pair
from t2t_jax.data.corpora.open import Corpus, parts_of
from t2t_jax.data.files.cache_paths import (
    partial_path,
    publish,
    remove_abandoned_builds,
    remove_stale_build,
    token_caches,
)
from t2t_jax.data.files.progress import ProgressBar
from t2t_jax.data.token_cache.builder import (
    META_FILE,
    TOKEN_DTYPES,
    build_cache,
    exclusive_lock,
)
from t2t_jax.data.token_cache.filters import Hashes
from t2t_jax.data.token_cache.shards import WORDS, is_valid
from t2t_jax.data.token_cache.statistics import LONGEST_NAME, truncate
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import OutputError, write_error
from t2t_jax.files import read_json_object


class TokenSide(NamedTuple):
    """One language of an encoded corpus.

    Attributes:
      tokens: all sentences on end, each followed by eos.
      offsets: [N + 1] where each sentence begins in `tokens`, and the end; int64.
    """

    tokens: Integers
    offsets: Integers

    @property
    def lengths(self) -> Integers:
        """[N] tokens of each sentence, eos included; int32, computed anew each time."""
        lengths = np.empty(len(self.offsets) - 1, np.int32)
        # Without a temporary of 8 bytes each, which would take most of the time.
        np.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="unsafe")
        return lengths


def mapped(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Maps a file of numbers into memory."""
    # A plain view: numpy indexes its memmap subclass several times more slowly.
    return np.asarray(np.memmap(path, dtype, "r"))


FORMAT = 4


@dataclass(frozen=True)
class TokenCache:
    """An encoded corpus.

    Attributes:
      source: the sentences to translate.
      target: their translations.
      line_numbers: [N] line of each kept pair in its part of the corpus, from 1.
      meta: what it was made of, and the figures of the text, as stored.
      hashes: of each side's sentences, [N] both.
      weights: how often the pairs of each part are seen in an epoch.
      corpora: the parts themselves, as whoever opened this has named them.
      source_words: hashes of the words of the source sentences, sorted, each once.
    """

    source: TokenSide
    target: TokenSide
    line_numbers: Integers
    meta: dict[str, Any]
    hashes: tuple[Hashes, ...] = ()
    weights: tuple[float, ...] = (1.0,)
    corpora: tuple[Corpus, ...] = ()
    source_words: Hashes | None = None

    @property
    def num_pairs(self) -> int:
        """Pairs kept, N."""
        return len(self.line_numbers)

    @cached_property
    def source_lengths(self) -> Integers:
        """[N] tokens of each source sentence, eos included."""
        return self.source.lengths

    @cached_property
    def target_lengths(self) -> Integers:
        """[N] tokens of each target sentence, eos included."""
        return self.target.lengths

    @property
    def part_pairs(self) -> tuple[int, ...]:
        """Pairs kept of each part of the corpus, one part after the other."""
        parts = self.meta.get("parts")
        if parts is None:
            return (self.num_pairs,)
        return tuple(part["counts"]["kept"] for part in parts)

    def place(self, pair: int) -> PairLocation:
        """Finds where a pair stands in the text, by its number here, from 0."""
        ends = np.cumsum(self.part_pairs)
        part = int(np.searchsorted(ends, pair, side="right"))
        return locate_pair(self.corpora[part], int(self.line_numbers[pair]))

    @property
    def counts(self) -> dict[str, int]:
        """Pairs read and kept, and dropped by each of `filters.REASONS`."""
        return dict(self.meta["counts"])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of corpus, vocabularies, filters and format."""
        return str(self.meta["fingerprint"])


def build_or_open(
    corpus: Corpus,
    vocabularies: VocabularyPair,
    *,
    config: DataConfig,
    progress: ProgressBar | None = None,
) -> TokenCache:
    """Encodes a corpus, unless it has been.

    Args:
      corpus: sentence pairs; their weights are not part of what is stored.
      vocabularies: what cuts them into subwords.
      config: which pairs are dropped, how many processes encode, where caches are.
      progress: where people are told of it; None tells nobody.

    Returns:
      The cache, memory-mapped. A damaged one is replaced; one that a killed process
      has begun is gone on with.

    Raises:
      ConfigError: there is no such home directory as `data.cache_dir` names.
      DataError: the text is broken, or no pair is left of a part.
      OSError: the disk is full or fails.
      OutputError: the cache cannot be written.
      StoppedError: a process that encodes has died.
    """
    progress = progress or ProgressBar()
    home = token_caches(config)
    name = truncate(corpus.spec, LONGEST_NAME)
    with progress.heartbeat(f"Looking whether {name} is encoded"):
        made_of = _made_of(corpus, vocabularies, config)
        fingerprint = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
        place = home / f"tokens-{fingerprint[:24]}"
        cache = _open(place, corpus, fingerprint)
    building = partial_path(place)
    if cache is not None:
        remove_stale_build(building)
        return cache
    meta = {"fingerprint": fingerprint, "spec": corpus.spec, **made_of}
    with _refused_by_name(home):
        remove_abandoned_builds(home)
        with exclusive_lock(building, progress):
            if _open(place, corpus, fingerprint) is None:  # nobody else was quicker
                whole = build_cache(
                    building,
                    corpus,
                    vocabularies,
                    config=config,
                    meta=meta,
                    progress=progress,
                )
                publish(whole, place)
            shutil.rmtree(building, ignore_errors=True)
    if (cache := _open(place, corpus, fingerprint)) is None:
        raise OutputError(
            f"{place}: the token cache does not read as it was written. "
            "Change config.data.cache_dir."
        )
    return cache


@contextmanager
def _refused_by_name(home: Path) -> Iterator[None]:
    """Lets what the disk refuses name the place, and the key that chooses it."""
    try:
        yield
    except OSError as error:
        raise write_error(
            home,
            error,
            told="the token cache cannot be written",
            change="change config.data.cache_dir",
        ) from error


def _made_of(
    corpus: Corpus, vocabularies: VocabularyPair, config: DataConfig
) -> dict[str, Any]:
    """Tells all that the content of a cache depends on."""
    return {
        "format": FORMAT,
        "corpus": corpus.fingerprint(),
        "vocabulary": vocabularies.fingerprint,
        "max_length": config.max_length,
        "max_length_ratio": config.max_length_ratio,
        "drop_copies": config.drop_copies,
        "drop_duplicates": config.drop_duplicates,
    }


def _open(place: Path, corpus: Corpus, fingerprint: str) -> TokenCache | None:
    """Maps a cache, or returns None where there is none that is whole."""
    try:
        meta = read_json_object(place / META_FILE, mend="Remove it.")
        # Every byte is read, a second for 3 GB: what a disk has changed is not noticed
        # by training on it.
        if meta["fingerprint"] != fingerprint or not is_valid(place, meta["files"]):
            return None
        # A directory of caches may be shared: of type "O" NumPy would take the bytes of
        # the file for addresses in memory, and follow them.
        dtype = meta["dtype"]
        if dtype not in TOKEN_DTYPES:
            return None
        source, target = (
            TokenSide(
                mapped(place / f"{side}.tokens", dtype),
                mapped(place / f"{side}.offsets", np.int64),
            )
            for side in ("source", "target")
        )
        cache = TokenCache(
            source,
            target,
            mapped(place / "line_numbers", np.int64),
            meta,
            tuple(
                mapped(place / f"{side}.hashes", np.uint64)
                for side in ("source", "target")
            ),
            source_words=np.fromfile(place / WORDS, np.uint64),
        )
        return _as_named(cache, corpus)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _as_named(cache: TokenCache, corpus: Corpus) -> TokenCache:
    """Gives a cache the names and weights that this corpus has, and no other."""
    parts = parts_of(corpus)
    named = [
        {"spec": part.corpus.spec, **figures}
        for part, figures in zip(parts, cache.meta["parts"], strict=True)
    ]
    return dataclasses.replace(
        cache,
        meta={**cache.meta, "spec": corpus.spec, "parts": named},
        weights=tuple(part.weight for part in parts),
        corpora=tuple(part.corpus for part in parts),
    )
