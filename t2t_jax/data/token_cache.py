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
from typing import Any

import numpy as np

from t2t_jax.data.building import META_FILE, TOKEN_DTYPES, alone_in, build_cache
from t2t_jax.data.cache_places import (
    building_place,
    publish,
    remove_forgotten,
    remove_remains,
    token_caches,
)
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora import Corpus, parts_of
from t2t_jax.data.filters import Hashes
from t2t_jax.data.mixture import Place, place_of
from t2t_jax.data.packing import Integers
from t2t_jax.data.progress import Progress
from t2t_jax.data.refusals import refusal
from t2t_jax.data.shards import WORDS, is_whole
from t2t_jax.data.tally import LONGEST_NAME, clip
from t2t_jax.data.token_side import TokenSide, mapped
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.errors import OutputError
from t2t_jax.files import read_object

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

    def place(self, pair: int) -> Place:
        """Finds where a pair stands in the text, by its number here, from 0."""
        ends = np.cumsum(self.part_pairs)
        part = int(np.searchsorted(ends, pair, side="right"))
        return place_of(self.corpora[part], int(self.line_numbers[pair]))

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
    vocabularies: Vocabularies,
    *,
    config: DataConfig,
    progress: Progress | None = None,
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
    progress = progress or Progress()
    home = token_caches(config)
    name = clip(corpus.spec, LONGEST_NAME)
    with progress.under_way(f"Looking whether {name} is encoded"):
        made_of = _made_of(corpus, vocabularies, config)
        fingerprint = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
        place = home / f"tokens-{fingerprint[:24]}"
        cache = _open(place, corpus, fingerprint)
    building = building_place(place)
    if cache is not None:
        remove_remains(building)
        return cache
    meta = {"fingerprint": fingerprint, "spec": corpus.spec, **made_of}
    with _refused_by_name(home):
        remove_forgotten(home)
        with alone_in(building, progress):
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
        raise refusal(
            home,
            error,
            told="the token cache cannot be written",
            change="change config.data.cache_dir",
        ) from error


def _made_of(
    corpus: Corpus, vocabularies: Vocabularies, config: DataConfig
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
        meta = read_object(place / META_FILE, mend="Remove it.")
        # Every byte is read, a second for 3 GB: what a disk has changed is not noticed
        # by training on it.
        if meta["fingerprint"] != fingerprint or not is_whole(place, meta["files"]):
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
