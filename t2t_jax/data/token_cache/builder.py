"""Builds a token cache shard by shard; an interrupted build is resumed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from t2t_jax.data.config import FILTERS, SIDES, DataConfig
from t2t_jax.data.corpora.corpus import (
    Corpus,
    Part,
    direction_of,
    languages_of,
    parts_of,
    sample_evenly,
    short_name,
    tag_of,
)
from t2t_jax.data.corpora.open import large_file_of
from t2t_jax.data.files.progress_bar import ProgressBar
from t2t_jax.data.token_cache import shards as token_shards
from t2t_jax.data.token_cache.encoder import Chunk, Encoded, PairEncoder, max_characters
from t2t_jax.data.token_cache.filters import (
    DuplicateFilter,
    Trigrams,
    learn_trigrams,
    pair_hashes,
    trigrams_of,
)
from t2t_jax.data.token_cache.shards import Shard, examples_of
from t2t_jax.data.token_cache.worker_pool import (
    CHUNK_PAIRS,
    Result,
    encode_chunks,
    num_workers,
)
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import DataError, UserError
from t2t_jax.files import fsync_directory

META_FILE = "meta.json"
_SAMPLED_PAIRS = 20_000

TOKEN_DTYPES = ("<u2", "<u4")
"""Types of stored ids: the smaller one if all ids fit."""


def build_cache(
    building: Path,
    corpus: Corpus,
    vocabularies: VocabularyPair,
    *,
    config: DataConfig,
    meta: dict[str, Any],
    progress: ProgressBar,
) -> Path:
    """Encodes the missing shards and joins all of them into a cache.

    Args:
      building: a locked directory; its shards are of the same corpus, vocabularies and
        filters.
      meta: stored in `meta.json` with counts, statistics, dtype, and size and CRC-32 of
        every file.

    Returns:
      The directory of the complete cache, inside `building`, synced to disk.

    Raises:
      DataError: the text is invalid, or no pair of a part is kept.
      UnavailableError: an encoding process died.
    """
    source, target = vocabularies
    dtype = TOKEN_DTYPES[max(source.size, target.size) > 1 << 16]
    models, names = (source.model, target.model), config.filter_names
    try:
        trigrams = _learn_trigrams(corpus, progress) if "language" in names else None
        encoder = PairEncoder(models, config, dtype, trigrams)
        shards = _build_shards(building, corpus, encoder, progress)
        if "duplicate_targets" in names:
            shards = _without_repeats(shards, parts_of(corpus))
        parts = [
            token_shards.statistics_of([s for s in shards if s.part == n], dtype)
            for n in range(len(parts_of(corpus)))
        ]
        _check_not_empty(corpus, [part["counts"] for part in parts], config)
    except DataError:
        shutil.rmtree(building, ignore_errors=True)
        deque(corpus, maxlen=0)  # reports the faults of later parts, too
        raise
    joined = building / "joined"
    shutil.rmtree(joined, ignore_errors=True)
    joined.mkdir()
    files = token_shards.join_shards(shards, joined, dtype)
    every = token_shards.statistics_of(shards, dtype) if parts[1:] else parts[0]
    facts = {"dtype": dtype, **every, "parts": parts, "files": files}
    token_shards.write_record(joined / META_FILE, {**meta, **facts})
    for path in joined.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    fsync_directory(joined)
    return joined


def _check_not_empty(
    corpus: Corpus, every: Sequence[Mapping[str, int]], config: DataConfig
) -> None:
    # Duplicates of another part's pairs do not make a part empty.
    left = ("kept", "duplicates", "duplicate_targets")
    problems = [
        f"{part.corpus.spec}: no pair is left of {counts['read']}: {counts['empty']} "
        f"have an empty side, {counts['too_long']} are longer than data.max_length="
        f"{config.max_length}, {counts['ratio'] + counts['copies']} are dropped by "
        "data.max_length_ratio and data.drop_copies, "
        f"{sum(counts.get(name, 0) for name in FILTERS)} by data.filters. Change the "
        "corpus or these keys."
        for part, counts in zip(parts_of(corpus), every, strict=True)
        if not any(counts.get(name) for name in left)
    ]
    if problems:
        raise DataError(problems)


def _learn_trigrams(corpus: Corpus, progress: ProgressBar) -> dict[str, Trigrams]:
    """Learns the trigrams of each language, from lines at equal distances."""
    counts: dict[str, Counter[str]] = {}
    for part, _ in parts_of(corpus):
        with progress.heartbeat(f"Reading {short_name(part.spec)} for data.filters"):
            pairs = zip(*sample_evenly(part, _SAMPLED_PAIRS), strict=True)
        for language, lines in zip(languages_of(part), pairs, strict=False):
            found = chain.from_iterable(map(trigrams_of, lines))
            counts.setdefault(language, Counter()).update(found)
    return {language: learn_trigrams(counts[language]) for language in counts}


def _without_repeats(shards: list[Shard], parts: Sequence[Part]) -> list[Shard]:
    """Keeps one pair of each target, in each direction and of each tag."""
    left = shards.copy()
    kinds = [(direction_of(part), tag_of(part)) for part, _ in parts]
    for kind in dict.fromkeys(kinds):
        own = [n for n, shard in enumerate(shards) if kinds[shard.part] == kind]
        every = token_shards.repeated_targets([shards[n] for n in own]) if own else []
        shown: Counter[int] = Counter()
        for number, repeated in zip(own, every, strict=True):
            shard = shards[number]
            lines = shard.array(token_shards.LINES, np.int64)[repeated]
            lines = lines[: token_shards.MAX_EXAMPLES - shown[shard.part]].tolist()
            shown[shard.part] += len(lines)
            text = islice(parts[shard.part].corpus, max(lines, default=0))
            pairs = {line: pair for line, pair in enumerate(text, 1) if line in lines}
            examples = [
                token_shards.example(line, *pairs[line], reason="duplicate_targets")
                for line in lines
            ]
            left[number] = shard.without(repeated, examples)
    return left


def _build_shards(
    building: Path, corpus: Corpus, encoder: PairEncoder, progress: ProgressBar
) -> list[Shard]:
    """Finds the complete shards of a corpus and writes the others."""
    parts, config = parts_of(corpus), encoder.config
    shards = token_shards.find_shards(building)
    done, workers = [0] * len(parts), num_workers(config.workers)
    for shard in shards:
        done[shard.part] += sum(shard.reasons)
    progress.log(f"Preparing {short_name(corpus.spec)} …")
    if shards:
        progress.log(f"Resuming after {sum(done):,} encoded pairs.")
    chunks = _chunks(parts, done, most=max_characters(config))
    with (
        contextlib.closing(encode_chunks(chunks, encoder, workers=workers)) as results,
        progress.start(total=_count(corpus, progress), done=sum(done)),
    ):
        seen = _seen_pairs(shards) if config.drop_duplicates else None
        chunked = groupby(_encoded_chunks(results, seen, progress), key=_shard_of)
        for _, group in chunked:
            path = token_shards.shard_path(building, len(shards))
            shards.append(token_shards.write_shard(path, list(group)))
    return shards


def _count(corpus: Corpus, progress: ProgressBar) -> int | None:
    if progress.is_enabled and not large_file_of(corpus):
        with contextlib.suppress(UserError):  # reported when the corpus is read
            return corpus.num_pairs()
    return None


def _chunks(parts: Sequence[Part], done: list[int], *, most: int) -> Iterator[Chunk]:
    """Cuts the remaining pairs into chunks within shards; truncates long lines."""
    for number, (part, skipped) in enumerate(zip(parts, done, strict=True)):
        tags = direction_of(part.corpus), tag_of(part.corpus)
        chunk = Chunk(number, skipped + 1, [], [], *tags)
        for line, pair in enumerate(part.corpus, start=1):
            if line <= skipped:
                continue
            for lines, text in zip((chunk.sources, chunk.targets), pair, strict=True):
                short = len(text) <= most
                lines.append(text if short else text.strip()[: most + 1])
            is_last = line % token_shards.SHARD_PAIRS == 0  # of a shard
            if is_last or len(chunk.sources) == CHUNK_PAIRS:
                yield chunk
                chunk = Chunk(number, line + 1, [], [], *tags)
        if chunk.sources:
            yield chunk


def _encoded_chunks(
    results: Iterator[Result], seen: DuplicateFilter | None, progress: ProgressBar
) -> Iterator[Encoded]:
    """Drops duplicates, finds examples and frees the text."""
    for chunk, encoded in results:
        if seen is not None:
            encoded = encoded.without_duplicates(seen)
        progress.advance(len(chunk.sources))
        yield encoded._replace(examples=examples_of(chunk, encoded))


def _shard_of(chunk: Encoded) -> tuple[int, int]:
    return chunk.part, (chunk.first - 1) // token_shards.SHARD_PAIRS


def _seen_pairs(shards: Sequence[Shard]) -> DuplicateFilter:
    seen = DuplicateFilter()
    for shard in shards:
        hashes = (shard.array(f"{side}.hashes", np.uint64) for side in SIDES)
        seen.is_new(pair_hashes(*hashes))
    return seen
