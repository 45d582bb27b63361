"""Text becomes tokens once: memory-mapped ids and offsets on disk.

A cache is a directory named by a hash of all that it depends on. It is built in
another, `NAME.building`, and renamed, so a reader finds it whole or not at all, whoever
else writes or dies; whoever asks for it while it is built waits for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.building import META_FILE, alone_in, build_cache
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora import Corpus, parts_of
from t2t_jax.data.filters import Hashes
from t2t_jax.data.packing import Integers
from t2t_jax.data.progress import Progress
from t2t_jax.data.shards import is_whole
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.errors import OutputError

FORMAT = 3


class TokenSide(NamedTuple):
    """One language of an encoded corpus.

    Attributes:
      tokens: all sentences on end, each followed by eos.
      offsets: [N + 1] where each sentence begins in `tokens`, and the end; int64.
    """

    tokens: Integers
    offsets: Integers


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
    """

    source: TokenSide
    target: TokenSide
    line_numbers: Integers
    meta: dict[str, Any]
    hashes: tuple[Hashes, ...] = ()
    weights: tuple[float, ...] = (1.0,)

    @property
    def num_pairs(self) -> int:
        """Pairs kept, N."""
        return len(self.line_numbers)

    @property
    def source_lengths(self) -> Integers:
        """[N] tokens of each source sentence, eos included."""
        return np.diff(self.source.offsets).astype(np.int32)

    @property
    def target_lengths(self) -> Integers:
        """[N] tokens of each target sentence, eos included."""
        return np.diff(self.target.offsets).astype(np.int32)

    @property
    def part_pairs(self) -> tuple[int, ...]:
        """Pairs kept of each part of the corpus, one part after the other."""
        parts = self.meta.get("parts")
        if parts is None:
            return (self.num_pairs,)
        return tuple(part["counts"]["kept"] for part in parts)

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
      DataError: the text is broken, or no pair is left of a part.
      OutputError: the cache cannot be written.
      StoppedError: a process that encodes has died.
    """
    progress = progress or Progress()
    made_of = _made_of(corpus, vocabularies, config)
    fingerprint = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    home = Path(config.cache_dir).expanduser() if config.cache_dir else cache_home()
    place = home / f"tokens-{fingerprint[:24]}"
    building = place.with_suffix(".building")
    if (cache := _open(place, corpus, fingerprint)) is not None:
        _remove_remains(building)
        return cache
    meta = {"fingerprint": fingerprint, "spec": corpus.spec, **made_of}
    try:
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
                _publish(whole, place)
            shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        raise OutputError(
            f"{home}: the token cache cannot be written ({error.strerror}). "
            "Change config.data.cache_dir."
        ) from error
    if (cache := _open(place, corpus, fingerprint)) is None:
        raise OutputError(
            f"{place}: the token cache does not read as it was written. "
            "Change config.data.cache_dir."
        )
    return cache


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


def cache_home() -> Path:
    """Returns t2t_jax in XDG_CACHE_HOME, or in ~/.cache where that is not set."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "t2t_jax"


def _open(place: Path, corpus: Corpus, fingerprint: str) -> TokenCache | None:
    """Maps a cache, or returns None where there is none that is whole."""
    try:
        meta = json.loads((place / META_FILE).read_text(encoding="utf-8"))
        # Every byte is read, a second for 3 GB: what a disk has changed is not noticed
        # by training on it.
        if meta["fingerprint"] != fingerprint or not is_whole(place, meta["files"]):
            return None
        dtype = meta["dtype"]
        source, target = (
            TokenSide(
                _map(place / f"{side}.tokens", dtype),
                _map(place / f"{side}.offsets", np.int64),
            )
            for side in ("source", "target")
        )
        cache = TokenCache(
            source,
            target,
            _map(place / "line_numbers", np.int64),
            meta,
            tuple(
                _map(place / f"{side}.hashes", np.uint64)
                for side in ("source", "target")
            ),
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
    )


def _map(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    # A plain view: numpy indexes its memmap subclass several times more slowly.
    return np.asarray(np.memmap(path, dtype, "r"))


def _publish(whole: Path, place: Path) -> None:
    """Renames a finished cache to its place, where a damaged one may be."""
    if place.exists():
        os.rename(place, whole.with_name("damaged"))
    os.rename(whole, place)


def _remove_remains(building: Path) -> None:
    """Removes what a process has left that died when its cache was in place."""
    with contextlib.suppress(OSError):  # whoever holds the lock is about to do it
        with (building / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(building, ignore_errors=True)
