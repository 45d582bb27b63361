"""Text becomes tokens once: memory-mapped ids and offsets on disk.

A cache is a directory named by a hash of all that it depends on. It is written beside
and renamed, so a reader finds it whole or not at all, whoever else writes or dies.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.corpora import Corpus
from t2t_jax.data.encoding import FORMAT, META_FILE, write_tokens
from t2t_jax.data.packing import Integers
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.errors import OutputError

_STALE_SECONDS = 3600


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
      line_numbers: [N] line of each kept pair in the corpus, from 1.
      meta: what it was made of, `counts` included, as stored.
    """

    source: TokenSide
    target: TokenSide
    line_numbers: Integers
    meta: dict[str, Any]

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
    def counts(self) -> dict[str, int]:
        """Pairs read and kept, and dropped by reason: empty, too_long."""
        return dict(self.meta["counts"])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of corpus, vocabulary, maximum length and format."""
        return str(self.meta["fingerprint"])


def build_or_open(
    corpus: Corpus,
    vocabularies: Vocabularies,
    *,
    max_length: int,
    cache_dir: str | Path = "",
) -> TokenCache:
    """Encodes a corpus, unless it has been.

    Args:
      corpus: sentence pairs.
      vocabularies: what cuts them into subwords.
      max_length: tokens of the longest sentence kept, eos included.
      cache_dir: where caches are; empty means t2t_jax in the user's cache home.

    Returns:
      The cache, memory-mapped. A damaged one is replaced.

    Raises:
      DataError: the text is broken, or no pair is left.
      OutputError: the cache cannot be written.
    """
    made_of = {
        "format": FORMAT,
        "corpus": corpus.fingerprint(),
        "vocabulary": vocabularies.fingerprint,
        "max_length": max_length,
    }
    fingerprint = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    home = Path(cache_dir).expanduser() if cache_dir else cache_home()
    place = home / f"tokens-{fingerprint[:24]}"
    if (cache := _open(place, fingerprint)) is not None:
        return cache
    meta = {"fingerprint": fingerprint, "spec": corpus.spec, **made_of}
    try:
        home.mkdir(parents=True, exist_ok=True)
        _remove_stale(place)
        with _beside(place) as beside:
            write_tokens(beside, corpus, vocabularies, meta=meta)
            _publish(beside, place, fingerprint)
    except OSError as error:
        raise OutputError(
            f"{home}: the token cache cannot be written ({error.strerror}). "
            "Change config.data.cache_dir."
        ) from error
    if (cache := _open(place, fingerprint)) is None:
        raise OutputError(
            f"{place}: the token cache does not read as it was written. "
            "Change config.data.cache_dir."
        )
    return cache


def cache_home() -> Path:
    """Returns t2t_jax in XDG_CACHE_HOME, or in ~/.cache where that is not set."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "t2t_jax"


def _open(place: Path, fingerprint: str) -> TokenCache | None:
    """Maps a cache, or returns None where there is none that is whole."""
    try:
        meta = json.loads((place / META_FILE).read_text(encoding="utf-8"))
        whole = meta["fingerprint"] == fingerprint and all(
            (place / name).stat().st_size == size
            for name, size in meta["sizes"].items()
        )
        if not whole:
            return None
        dtype = meta["dtype"]
        source, target = (
            TokenSide(
                _map(place / f"{side}.tokens", dtype),
                _map(place / f"{side}.offsets", np.int64),
            )
            for side in ("source", "target")
        )
        line_numbers = _map(place / "line_numbers", np.int64)
        return TokenCache(source, target, line_numbers, meta)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _map(path: Path, dtype: npt.DTypeLike) -> Integers:
    # A plain view: numpy indexes its memmap subclass several times more slowly.
    return np.asarray(np.memmap(path, dtype, "r"))


@contextlib.contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """Lends a directory beside `place`, and removes it whatever happens."""
    # Not tempfile.mkdtemp, whose directories are closed to other users of the cache.
    directory = place.with_name(f"{place.name}.{uuid.uuid4().hex}")
    directory.mkdir()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _publish(beside: Path, place: Path, fingerprint: str) -> None:
    """Renames a finished cache to its place, unless another process came first."""
    if place.exists() and _open(place, fingerprint) is None:
        with _beside(place) as grave:
            os.rename(place, grave / "damaged")
    try:
        os.rename(beside, place)
    except OSError:
        if _open(place, fingerprint) is None:
            raise


def _remove_stale(place: Path) -> None:
    """Removes what a killed process has left; one at work wrote within the hour."""
    for left in place.parent.glob(f"{place.name}.*"):
        with contextlib.suppress(FileNotFoundError):  # its owner has just removed it
            newest = max(path.stat().st_mtime for path in (left, *left.iterdir()))
            if time.time() - newest > _STALE_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
