"""A corpus on its way into a token cache: shards that are whole or not there.

A shard holds what became of consecutive pairs of one corpus. It is written beside and
renamed, so after a kill all shards but the last are there, and need no encoding again.
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

from t2t_jax.data.token_cache.encoder import Encoded
from t2t_jax.data.token_cache.filters import KEPT, Hashes
from t2t_jax.data.token_cache.known_words import union
from t2t_jax.data.token_cache.statistics import SIDES, CorpusStats
from t2t_jax.files import read_json_object, safe_child_path

SHARD_PAIRS = 250_000
"""Pairs read for each shard: with two cores some seconds of work, and 40 MB."""

_READERS = 8
_COUNTS = "shard.json"
_LINES = "line_numbers"

WORDS = "source.words"
"""The file of hashes of the source words, sorted, each once."""


class EncodedChunk(NamedTuple):
    """What a shard is put together from: a chunk without its text.

    Attributes:
      part: which of the corpora it is of, from 0.
      first: line number of its first pair there, from 1.
      encoded: what became of its pairs.
      tally: their figures.
    """

    part: int
    first: int
    encoded: Encoded
    tally: CorpusStats


@dataclass(frozen=True)
class Shard:
    """One shard that is whole.

    Attributes:
      place: its directory.
      part: which of the corpora its pairs are of, from 0.
      tally: their figures.
    """

    place: Path
    part: int
    tally: CorpusStats

    def hashes(self, side: str) -> Hashes:
        """Reads the hashes of a side's sentences."""
        return np.fromfile(self.place / f"{side}.hashes", np.uint64)


def write_shard(place: Path, pieces: Sequence[EncodedChunk]) -> Shard:
    """Writes consecutive pairs of one corpus as a shard.

    Args:
      place: its directory, which does not exist or is not whole.
      pieces: at least one, in order.
    """
    beside = place.with_name(f"{place.name}.partial")
    for left in (beside, place):
        shutil.rmtree(left, ignore_errors=True)
    beside.mkdir()
    files: dict[str, list[int]] = {}
    for side in SIDES:
        sides = [getattr(piece.encoded, side) for piece in pieces]
        for kind in ("tokens", "lengths", "hashes"):
            arrays = (getattr(one, kind) for one in sides)
            files[f"{side}.{kind}"] = _write(beside / f"{side}.{kind}", arrays)
    lines = (
        (piece.first + np.flatnonzero(piece.encoded.reasons == KEPT)).astype(np.int64)
        for piece in pieces
    )
    files[_LINES] = _write(beside / _LINES, lines)
    words = union(piece.encoded.source_words for piece in pieces)
    files[WORDS] = _write(beside / WORDS, [words])
    tally = CorpusStats.total(piece.tally for piece in pieces)
    part = pieces[0].part
    told = {"part": part, "tally": tally.to_dict(), "files": files}
    (beside / _COUNTS).write_text(json.dumps(told), encoding="utf-8")
    os.rename(beside, place)
    return Shard(place, part, tally)


def _write(path: Path, arrays: Iterable[npt.NDArray[Any]]) -> list[int]:
    """Writes arrays on end; returns the file's size and checksum."""
    size = checksum = 0
    with path.open("wb") as file:
        for array in arrays:
            content = array.tobytes()
            file.write(content)
            size, checksum = size + len(content), zlib.crc32(content, checksum)
    return [size, checksum]


def shard_place(building: Path, number: int) -> Path:
    """Names the directory of a shard, counted from 0."""
    return building / f"shard-{number:05d}"


def find_shards(building: Path) -> list[Shard]:
    """Finds the shards that need not be made again: whole, and all before them too."""
    found: list[Shard] = []
    while (shard := _read(shard_place(building, len(found)))) is not None:
        found.append(shard)
    return found


def _read(place: Path) -> Shard | None:
    try:
        told = read_json_object(place / _COUNTS, mend="Remove it.")
        if not is_valid(place, told["files"]):
            return None
        return Shard(place, told["part"], CorpusStats(**told["tally"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_valid(place: Path, files: Mapping[str, Sequence[int]]) -> bool:
    """Tells whether files are as they were written, by reading them.

    Args:
      files: size and CRC-32 of each, by name.

    Raises:
      DataError: a name is of no file of the directory.
      OSError: one is not there or cannot be read.
    """

    def is_same(name: str) -> bool:
        size, checksum = files[name]
        path = safe_child_path(place, name)
        return path.stat().st_size == size and _checksum(path) == checksum

    # Both reading and zlib let go of Python's lock.
    with ThreadPoolExecutor(_READERS) as readers:
        return all(list(readers.map(is_same, files)))


def _checksum(path: Path) -> int:
    checksum, buffer = 0, memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while read := file.readinto(buffer):
            checksum = zlib.crc32(buffer[:read], checksum)
    return checksum


def join_shards(shards: Sequence[Shard], into: Path) -> dict[str, list[int]]:
    """Makes the files of a cache from those of its shards, one shard at a time.

    Args:
      shards: all of them, in order.

    Returns:
      Size and CRC-32 of each file, by name, as `is_valid` takes them.
    """
    files: dict[str, list[int]] = {}
    for side in SIDES:
        for kind in ("tokens", "hashes"):
            name = f"{side}.{kind}"
            files[name] = _write(into / name, _contents(shards, name))
        offsets = _offsets(shards, f"{side}.lengths")
        files[f"{side}.offsets"] = _write(into / f"{side}.offsets", offsets)
    files[_LINES] = _write(into / _LINES, _contents(shards, _LINES))
    parts = (np.fromfile(shard.place / WORDS, np.uint64) for shard in shards)
    files[WORDS] = _write(into / WORDS, [union(parts)])
    return files


def _contents(
    shards: Sequence[Shard], name: str
) -> Iterator[npt.NDArray[np.unsignedinteger]]:
    for shard in shards:
        yield np.fromfile(shard.place / name, np.uint8)


def _offsets(
    shards: Sequence[Shard], name: str
) -> Iterator[npt.NDArray[np.signedinteger]]:
    end = 0
    yield np.zeros(1, np.int64)
    for shard in shards:
        lengths = np.fromfile(shard.place / name, np.int32)
        offsets = end + np.cumsum(lengths, dtype=np.int64)
        yield offsets
        end = int(offsets[-1]) if len(offsets) else end


def fsync_dir(directory: Path) -> None:
    """Waits until the files of a directory, and their names, are on the disk.

    What is renamed after that is whole after a power cut too.
    """
    for path in directory.iterdir():
        _sync(path)
    with contextlib.suppress(OSError):  # some network file systems refuse directories
        _sync(directory)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
