"""Shards of an unfinished token cache.

A shard holds consecutive encoded pairs of one corpus. It is renamed atomically into
place, so after a kill all finished shards are valid and need not be encoded again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.arrays import Hashes
from t2t_jax.data.token_cache.encoder import Encoded
from t2t_jax.data.token_cache.filters import KEPT
from t2t_jax.data.token_cache.known_words import merge_hashes
from t2t_jax.data.token_cache.statistics import SIDES, CorpusStats
from t2t_jax.files import read_json_object, safe_child_path

SHARD_PAIRS = 250_000
"""Pairs read for each shard: some seconds of work on two cores, and 40 MB."""

_THREADS = 8
_COUNTS = "shard.json"
_LINES = "line_numbers"

WORDS = "source.words"
"""The file of hashes of the source words, sorted and unique."""


class EncodedChunk(NamedTuple):
    """An encoded chunk without its text; fields as of `Chunk`."""

    part: int
    first: int
    encoded: Encoded
    stats: CorpusStats


@dataclass(frozen=True)
class Shard:
    """A complete shard."""

    path: Path
    part: int
    stats: CorpusStats

    def hashes(self, side: str) -> Hashes:
        """Reads the hashes of one side's sentences."""
        return np.fromfile(self.path / f"{side}.hashes", np.uint64)


def write_shard(path: Path, chunks: Sequence[EncodedChunk]) -> Shard:
    """Writes consecutive chunks of one corpus as a shard."""
    partial = path.with_name(f"{path.name}.partial")
    for left in (partial, path):
        shutil.rmtree(left, ignore_errors=True)
    partial.mkdir()
    files: dict[str, list[int]] = {}
    for side in SIDES:
        sides = [getattr(chunk.encoded, side) for chunk in chunks]
        for kind in ("tokens", "lengths", "hashes"):
            arrays = (getattr(one, kind) for one in sides)
            files[f"{side}.{kind}"] = _write(partial / f"{side}.{kind}", arrays)
    lines = (
        (chunk.first + np.flatnonzero(chunk.encoded.reasons == KEPT)).astype(np.int64)
        for chunk in chunks
    )
    files[_LINES] = _write(partial / _LINES, lines)
    words = merge_hashes(chunk.encoded.source_words for chunk in chunks)
    files[WORDS] = _write(partial / WORDS, [words])
    stats = CorpusStats.total(chunk.stats for chunk in chunks)
    part = chunks[0].part
    record = {"part": part, "tally": stats.to_dict(), "files": files}
    (partial / _COUNTS).write_text(json.dumps(record), encoding="utf-8")
    os.rename(partial, path)
    return Shard(path, part, stats)


def _write(path: Path, arrays: Iterable[npt.NDArray[Any]]) -> list[int]:
    """Writes concatenated arrays; returns the file's size and CRC-32."""
    size = checksum = 0
    with path.open("wb") as file:
        for array in arrays:
            content = array.tobytes()
            file.write(content)
            size, checksum = size + len(content), zlib.crc32(content, checksum)
    return [size, checksum]


def shard_path(building: Path, number: int) -> Path:
    """Returns the directory of shard `number`, from 0."""
    return building / f"shard-{number:05d}"


def find_shards(building: Path) -> list[Shard]:
    """Returns the leading complete shards."""
    found: list[Shard] = []
    while (shard := _read(shard_path(building, len(found)))) is not None:
        found.append(shard)
    return found


def _read(path: Path) -> Shard | None:
    try:
        record = read_json_object(path / _COUNTS, advice="Remove it.")
        if not is_valid(path, record["files"]):
            return None
        return Shard(path, record["part"], CorpusStats(**record["tally"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_valid(directory: Path, files: Mapping[str, Sequence[int]]) -> bool:
    """Returns whether files have their recorded size and CRC-32.

    Raises:
      DataError: a name is not of a file in the directory.
      OSError: a file is missing or cannot be read.
    """

    def is_same(name: str) -> bool:
        size, checksum = files[name]
        file = safe_child_path(directory, name)
        return file.stat().st_size == size and _checksum(file) == checksum

    # Both reading and zlib release the GIL.
    with ThreadPoolExecutor(_THREADS) as pool:
        return all(list(pool.map(is_same, files)))


def _checksum(path: Path) -> int:
    checksum, buffer = 0, memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while read := file.readinto(buffer):
            checksum = zlib.crc32(buffer[:read], checksum)
    return checksum


def join_shards(shards: Sequence[Shard], into: Path) -> dict[str, list[int]]:
    """Writes the files of a cache from its shards; returns sizes and CRC-32 by name."""
    files: dict[str, list[int]] = {}
    for side in SIDES:
        for kind in ("tokens", "hashes"):
            name = f"{side}.{kind}"
            files[name] = _write(into / name, _contents(shards, name))
        offsets = _offsets(shards, f"{side}.lengths")
        files[f"{side}.offsets"] = _write(into / f"{side}.offsets", offsets)
    files[_LINES] = _write(into / _LINES, _contents(shards, _LINES))
    parts = (np.fromfile(shard.path / WORDS, np.uint64) for shard in shards)
    files[WORDS] = _write(into / WORDS, [merge_hashes(parts)])
    return files


def _contents(
    shards: Sequence[Shard], name: str
) -> Iterator[npt.NDArray[np.unsignedinteger]]:
    for shard in shards:
        yield np.fromfile(shard.path / name, np.uint8)


def _offsets(
    shards: Sequence[Shard], name: str
) -> Iterator[npt.NDArray[np.signedinteger]]:
    end = 0
    yield np.zeros(1, np.int64)
    for shard in shards:
        lengths = np.fromfile(shard.path / name, np.int32)
        offsets = end + np.cumsum(lengths, dtype=np.int64)
        yield offsets
        end = int(offsets[-1]) if len(offsets) else end


def fsync_dir(directory: Path) -> None:
    """Syncs the files of a directory, and their names, to disk."""
    for path in directory.iterdir():
        _fsync(path)
    with contextlib.suppress(OSError):  # some network file systems refuse directories
        _fsync(directory)


def _fsync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
