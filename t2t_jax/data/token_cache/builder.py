"""Builds a token cache in a directory beside its place, and goes on after a kill."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import Corpus, Part, parts_of
from t2t_jax.data.corpora.pair_counts import estimate_pairs
from t2t_jax.data.files.progress import ProgressBar
from t2t_jax.data.token_cache import shards as sharding
from t2t_jax.data.token_cache.encoder import PairEncoder, most_characters
from t2t_jax.data.token_cache.filters import (
    DuplicateFilter,
    mark_duplicates,
    pair_hashes,
)
from t2t_jax.data.token_cache.shards import EncodedChunk, Shard
from t2t_jax.data.token_cache.statistics import (
    LONGEST_NAME,
    SIDES,
    CorpusStats,
    truncate,
)
from t2t_jax.data.token_cache.worker_pool import (
    CHUNK_PAIRS,
    Chunk,
    Result,
    encode_chunks,
    num_workers,
)
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import DataError, UserError

META_FILE = "meta.json"

TOKEN_DTYPES = ("<u2", "<u4")
"""The types in which ids are stored: the smaller one where all ids fit it."""


@contextlib.contextmanager
def exclusive_lock(building: Path, progress: ProgressBar) -> Iterator[None]:
    """Lends a directory to one process at a time; a second one waits, and says so.

    The lock goes with the process that holds it, however that ends.

    Args:
      building: the directory; made if it is not there. Whoever holds it may remove it.
      progress: where people are told of waiting.
    """
    while True:
        building.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # removed since the line before
            with (building / "lock").open("a") as lock:
                _wait_for(lock, building, progress)
                if _is_still_there(building / "lock", lock):
                    yield
                    return


def _wait_for(lock: IO[str], building: Path, progress: ProgressBar) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress.log(
            f"Another process is preparing {building.with_suffix('')}: waiting for it …"
        )
        fcntl.flock(lock, fcntl.LOCK_EX)


def _is_still_there(path: Path, lock: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False


def build_cache(
    building: Path,
    corpus: Corpus,
    vocabularies: VocabularyPair,
    *,
    config: DataConfig,
    meta: dict[str, Any],
    progress: ProgressBar,
) -> Path:
    """Encodes what is not encoded yet, and makes the files of a cache of it.

    Args:
      building: a directory that is this process's alone; shards in it are of the same
        corpus, vocabularies and filters.
      vocabularies: what cuts them into subwords.
      config: filters and number of processes.
      meta: what the cache was made of; stored in `meta.json` with the counts by
        reason, figures of every part, the dtype, and the size and the CRC-32 of every
        file.
      progress: where people are told of it.

    Returns:
      The directory, inside `building`, that is the whole cache, and on the disk.

    Raises:
      DataError: the text is broken, or no pair is left of a part.
      StoppedError: a process that encodes has died.
    """
    largest = max(vocabulary.size for vocabulary in vocabularies)
    dtype = TOKEN_DTYPES[largest > 1 << 16]
    source, target = vocabularies
    encoder = PairEncoder((source.model, target.model), config, dtype)
    try:
        shards = _all_shards(building, corpus, encoder, config, progress)
        parts = [
            CorpusStats.total(shard.tally for shard in shards if shard.part == number)
            for number in range(len(parts_of(corpus)))
        ]
        _require_some(corpus, parts, config)
    except DataError:
        shutil.rmtree(building, ignore_errors=True)
        deque(corpus, maxlen=0)  # so that what is wrong with later parts is told too
        raise
    joined = building / "joined"
    shutil.rmtree(joined, ignore_errors=True)
    joined.mkdir()
    files = sharding.join_shards(shards, joined)
    told = {**meta, "dtype": dtype, **CorpusStats.total(parts).to_dict()}
    told["parts"] = [part.to_dict() for part in parts]
    told["files"] = files
    text = json.dumps(told)  # ASCII: names of files need not be UTF-8
    (joined / META_FILE).write_text(text + "\n", encoding="utf-8")
    sharding.fsync_dir(joined)
    return joined


def _require_some(
    corpus: Corpus, tallies: list[CorpusStats], config: DataConfig
) -> None:
    """Checks that each part of a corpus has pairs, or its weight would say nothing."""
    problems = []
    for part, tally in zip(parts_of(corpus), tallies, strict=True):
        counts = tally.counts
        # Pairs that another part has had are there all the same.
        if not counts["kept"] + counts["duplicates"]:
            problems.append(
                f"{part.corpus.spec}: no pair is left of {counts['read']}: "
                f"{counts['empty']} have an empty side, {counts['too_long']} are "
                f"longer than data.max_length={config.max_length}, "
                f"{counts['ratio'] + counts['copies']} are dropped by "
                "data.max_length_ratio and data.drop_copies. Change the corpus or "
                "config.data.max_length."
            )
    if problems:
        raise DataError(problems)


def _all_shards(
    building: Path,
    corpus: Corpus,
    encoder: PairEncoder,
    config: DataConfig,
    progress: ProgressBar,
) -> list[Shard]:
    """Finds the shards of a corpus that are whole, and writes the others."""
    parts = parts_of(corpus)
    shards = sharding.find_shards(building)
    done = [0] * len(parts)
    for shard in shards:
        done[shard.part] += shard.tally.counts["read"]
    workers = num_workers(config.workers)
    progress.log(f"Preparing {truncate(corpus.spec, LONGEST_NAME)} …")
    if shards:
        progress.log(f"Going on after {sum(done):,} pairs that are encoded already.")
    chunks = _chunks(parts, done, most=most_characters(config))
    total, is_exact = _count(corpus, progress)
    with (
        contextlib.closing(encode_chunks(chunks, encoder, workers=workers)) as results,
        progress.start(total=total, is_exact=is_exact, done=sum(done)),
    ):
        seen = _seen(shards) if config.drop_duplicates else None
        for _, pieces in groupby(_pieces(results, seen, progress), key=_shard_of):
            place = sharding.shard_place(building, len(shards))
            shards.append(sharding.write_shard(place, list(pieces)))
    return shards


def _count(corpus: Corpus, progress: ProgressBar) -> tuple[int | None, bool]:
    """Counts or foretells the pairs to come, if that is of use to anybody."""
    if progress.is_enabled:
        with contextlib.suppress(UserError):  # what is wrong is told by reading it
            return estimate_pairs(corpus)
    return None, True


def _chunks(parts: Sequence[Part], done: list[int], *, most: int) -> Iterator[Chunk]:
    """Cuts the pairs of each part after those that are done; no shard shares a chunk.

    Of lines with more than `most` characters just enough is kept to see that they are
    too long: memory holds thousands of lines at a time.
    """
    for number, (part, skipped) in enumerate(zip(parts, done, strict=True)):
        chunk = Chunk(number, skipped + 1, [], [])
        for line, pair in enumerate(part.corpus, start=1):
            if line <= skipped:
                continue
            for lines, text in zip((chunk.sources, chunk.targets), pair, strict=True):
                short = len(text) <= most
                lines.append(text if short else text.strip()[: most + 1])
            if len(chunk.sources) == CHUNK_PAIRS or line % sharding.SHARD_PAIRS == 0:
                yield chunk
                chunk = Chunk(number, line + 1, [], [])
        if chunk.sources:
            yield chunk


def _pieces(
    results: Iterator[Result], seen: DuplicateFilter | None, progress: ProgressBar
) -> Iterator[EncodedChunk]:
    """Drops what has been seen, counts, and lets go of the text."""
    for chunk, encoded in results:
        if seen is not None:
            hashes = pair_hashes(encoded.source.hashes, encoded.target.hashes)
            reasons = mark_duplicates(encoded.reasons, hashes, seen)
            encoded = encoded.with_reasons(reasons)
        progress.advance(len(chunk.sources))
        tally = CorpusStats.of_chunk(chunk, encoded)
        yield EncodedChunk(chunk.part, chunk.first, encoded, tally)


def _shard_of(piece: EncodedChunk) -> tuple[int, int]:
    return piece.part, (piece.first - 1) // sharding.SHARD_PAIRS


def _seen(shards: Sequence[Shard]) -> DuplicateFilter:
    """Remembers the pairs of the shards that need not be made again."""
    seen = DuplicateFilter()
    for shard in shards:
        seen.is_new(pair_hashes(*(shard.hashes(side) for side in SIDES)))
    return seen
