"""Shards of an unfinished token cache.

A shard holds consecutive encoded pairs of one corpus. It is renamed atomically into
place, so after a kill all finished shards are valid and need not be encoded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_jax.data.arrays import Flags
from t2t_jax.data.config import SIDES
from t2t_jax.data.corpora.corpus import truncate
from t2t_jax.data.token_cache.encoder import Chunk, Encoded, Examples
from t2t_jax.data.token_cache.filters import (
    ALWAYS_COUNTED,
    KEPT,
    REASONS,
    first_differences,
)
from t2t_jax.data.token_cache.known_words import merge_hashes
from t2t_jax.errors import DataError
from t2t_jax.files import read_json_object, safe_child_path
from t2t_jax.types import UNK

SHARD_PAIRS = 250_000
"""Pairs read for each shard: some seconds of work on two cores, and 40 MB."""

_THREADS = 8
_RECORD = "shard.json"
LINES = "line_numbers"
"""The file of the lines of the kept pairs."""

_CHECKSUM = "sha256"

MAX_EXAMPLES = 3
_REPEATED = REASONS.index("duplicate_targets")

WORDS = "source.words"
"""The file of hashes of the source words, sorted and unique."""


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a JSON object with a checksum of itself."""
    content = {**record, _CHECKSUM: _checksum_of(record)}  # ASCII, as names may need
    path.write_text(f"{json.dumps(content)}\n", encoding="utf-8")


def read_record(path: Path) -> dict[str, Any]:
    """Reads what `write_record` has written.

    Raises:
      DataError: the file is damaged.
      OSError: it cannot be read.
    """
    record = read_json_object(path, advice="Remove it.")
    if record.pop(_CHECKSUM, "") != _checksum_of(record):
        raise DataError(f"{path} is damaged: it has another checksum. Remove it.")
    return record


def _checksum_of(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()


def examples_of(chunk: Chunk, encoded: Encoded) -> Examples:
    """Returns the examples of an encoded chunk."""
    found = {}
    for number, reason in enumerate(REASONS):
        pairs = np.flatnonzero(encoded.reasons == number)[:MAX_EXAMPLES].tolist()
        texts = ((n, chunk.sources[n], chunk.targets[n]) for n in pairs)
        found[reason] = [
            example(chunk.first + n, *sides, reason=reason) for n, *sides in texts
        ]
    return found


def example(line: int, *sides: str, reason: str) -> dict[str, Any]:
    """Returns an example of a dropped pair, as JSON values.

    Long sides are truncated around what a filter found on one of them alone.
    """
    places = first_differences(reason, *sides)
    shown = [truncate(one, showing=at) for one, at in zip(sides, places, strict=True)]
    return {"line": line, **dict(zip(SIDES, shown, strict=True))}


def _first_examples(parts: Iterable[Examples]) -> Examples:
    """Returns the first examples of consecutive pieces of a text."""
    every = list(parts)
    found = {}
    for reason in REASONS:
        pairs = [one for part in every for one in part.get(reason, ())]
        if pairs or reason in ALWAYS_COUNTED:
            found[reason] = pairs[:MAX_EXAMPLES]
    return found


@dataclass(frozen=True)
class Shard:
    """A complete shard.

    Attributes:
      reasons: of its pairs, how many were dropped by each of `REASONS`, and kept.
      mask: of the pairs of its files, which are kept; None for all.
    """

    path: Path
    part: int
    reasons: list[int]
    examples: Examples
    mask: Flags | None = None

    def array(self, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Reads a file of the shard, such as `source.hashes`.

        `WORDS` is of all pairs of its files, also of those that `mask` leaves out.
        """
        values, mask = np.fromfile(self.path / name, dtype), self.mask
        if mask is None or name == WORDS:
            return values
        side, _, kind = name.partition(".")
        if kind == "tokens":
            mask = np.repeat(mask, np.fromfile(self.path / f"{side}.lengths", np.int32))
        return values[mask]

    def without(self, repeated: Flags, examples: Sequence[dict[str, Any]]) -> Shard:
        """Returns the shard without its kept pairs whose targets are `repeated`."""
        reasons, count = self.reasons.copy(), int(repeated.sum())
        reasons[KEPT] -= count
        reasons[_REPEATED] += count
        found = {**self.examples, REASONS[_REPEATED]: [*examples]}
        return Shard(self.path, self.part, reasons, found, ~repeated)


def repeated_targets(shards: Sequence[Shard]) -> list[Flags]:
    """Returns, for each shard, which kept pairs have a target that another has, too.

    Of the pairs of one target that is not marked whose sides differ in length most
    nearly as usual, or the first of these. About 30 bytes a pair are held.
    """

    def joined(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return np.concatenate([shard.array(name, dtype) for shard in shards])

    unusual = np.log(np.divide(*(joined(f"{s}.lengths", np.int32) for s in SIDES)))
    unusual -= np.median(unusual) if len(unusual) else 0.0
    unusual = np.abs(unusual).round(3)  # the same on any machine
    hashes = joined("target.hashes", np.uint64)
    order = np.lexsort((unusual, hashes))
    del unusual
    hashes = hashes[order]
    repeated = np.zeros(len(hashes), np.bool_)
    repeated[order[1:]] = hashes[1:] == hashes[:-1]
    return np.split(repeated, np.cumsum([shard.reasons[KEPT] for shard in shards])[:-1])


def write_shard(path: Path, chunks: Sequence[Encoded]) -> Shard:
    """Writes consecutive chunks of one corpus as a shard."""
    partial = path.with_name(f"{path.name}.partial")
    for left in (partial, path):
        shutil.rmtree(left, ignore_errors=True)
    partial.mkdir()
    arrays: dict[str, list[npt.NDArray[Any]]] = {}
    for side, kind in product(SIDES, ("tokens", "lengths", "hashes")):
        arrays[f"{side}.{kind}"] = [getattr(getattr(x, side), kind) for x in chunks]
    kept = ((chunk.first, chunk.reasons == KEPT) for chunk in chunks)
    arrays[LINES] = [(n + np.flatnonzero(mask)).astype(np.int64) for n, mask in kept]
    arrays[WORDS] = [merge_hashes(chunk.source_words for chunk in chunks)]
    files = {name: _write(partial / name, parts) for name, parts in arrays.items()}
    reasons = np.concatenate([chunk.reasons for chunk in chunks])
    facts: dict[str, Any] = {
        "part": chunks[0].part,
        "reasons": np.bincount(reasons, minlength=KEPT + 1).tolist(),
        "examples": _first_examples(chunk.examples or {} for chunk in chunks),
    }
    write_record(partial / _RECORD, {**facts, "files": files})
    os.rename(partial, path)
    return Shard(path, **facts)


def statistics_of(shards: Sequence[Shard], dtype: str) -> dict[str, Any]:
    """Computes the statistics of the pairs of some shards, as JSON values.

    Args:
      dtype: of the tokens.

    Returns:
      `counts` of pairs read, kept, and dropped by reason; for each side the `unknown`
      tokens, and `lengths`: how many sentences have 0, 1, 2 … tokens, eos included;
      and `examples`.
    """
    reasons = np.sum([shard.reasons for shard in shards] or [[0] * (KEPT + 1)], axis=0)
    unknown, lengths = {}, {}
    for side in SIDES:
        tokens = (shard.array(f"{side}.tokens", dtype) for shard in shards)
        unknown[side] = sum(int(np.count_nonzero(some == UNK)) for some in tokens)
        every = [shard.array(f"{side}.lengths", np.int32) for shard in shards]
        lengths[side] = np.bincount(np.concatenate([*every, []]).astype(int)).tolist()
    counts = {"read": int(reasons.sum()), "kept": int(reasons[KEPT])}
    for reason, count in zip(REASONS, reasons.tolist(), strict=False):
        if count or reason in ALWAYS_COUNTED:
            counts[reason] = count
    examples = _first_examples(shard.examples for shard in shards)
    found = {"counts": counts, "unknown": unknown, "lengths": lengths}
    return {**found, "examples": examples}


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
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        while True:
            path = shard_path(building, len(found))
            record = read_record(path / _RECORD)
            is_right = len(record["reasons"]) == KEPT + 1  # else of another version
            if not (is_valid(path, record.pop("files")) and is_right):
                break
            found.append(Shard(path, **record))
    return found


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
    checksum = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def join_shards(shards: Sequence[Shard], to: Path, dtype: str) -> dict[str, list[int]]:
    """Writes the files of a cache from its shards; returns sizes and CRC-32 by name.

    Args:
      dtype: of the tokens.
    """

    def contents(name: str, dtype: npt.DTypeLike) -> Iterator[npt.NDArray[Any]]:
        return (shard.array(name, dtype) for shard in shards)

    def offsets(side: str) -> Iterator[npt.NDArray[Any]]:
        end = np.zeros(1, np.int64)
        yield end
        for lengths in contents(f"{side}.lengths", np.int32):
            yield end[-1] + np.cumsum(lengths, dtype=np.int64)
            end = end + lengths.sum(dtype=np.int64)

    arrays: dict[str, Iterable[npt.NDArray[Any]]] = {}
    for side in SIDES:
        arrays[f"{side}.tokens"] = contents(f"{side}.tokens", dtype)
        arrays[f"{side}.hashes"] = contents(f"{side}.hashes", np.uint64)
        arrays[f"{side}.offsets"] = offsets(side)
    arrays[LINES] = contents(LINES, np.int64)
    arrays[WORDS] = [merge_hashes(contents(WORDS, np.uint64))]
    return {name: _write(to / name, parts) for name, parts in arrays.items()}
