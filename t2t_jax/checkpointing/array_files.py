"""Reads the arrays of an item of a checkpoint, without Orbax.

Orbax stores an array as Zarr in a key-value store of TensorStore, named by its path
with dots: `encoder.layer_0.…`. Importing Orbax takes ten times as long as importing
TensorStore, and is left to what saves, and to what restores a training state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorstore

from t2t_jax.checkpointing.checksums import describe_differences, dtype_shape

_MAX_CHUNKS = 1 << 16
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_REPEATED, _COMPRESSED = 1, 2  # kinds of blocks
_ZSTD_BLOCK_BYTES = 128 << 10
# The bound of a block is 128 KiB, and of 8 KiB are the smallest that are written.
_ZSTD_SLACK = (16, 1 << 20)


def read_arrays(directory: Path, expected: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Reads arrays to the host, all at once.

    Their content is not verified: a missing chunk of an array, for one, is read as
    zeros. What a chunk takes in memory is checked before it is read: an array of the
    right shape may be stored in chunks of any size.

    Args:
      directory: of the item, such as `checkpoints/7/params`.
      expected: by path, such as `encoder/layer_0/…`, dtype and shape, as of
        `checksums.dtype_shapes`. An array of other ones is not read.

    Returns:
      The arrays by path.

    Raises:
      ValueError: an array is missing, cannot be read, is not as expected, or is stored
        otherwise than Orbax stores it.
    """
    context = tensorstore.Context()
    specs = {path: _spec(directory, path.replace("/", ".")) for path in expected}
    opening = {
        path: tensorstore.open(spec, read=True, context=context)
        for path, spec in specs.items()
    }
    opened = {path: array.result() for path, array in opening.items()}
    found = {
        path: dtype_shape(jax.ShapeDtypeStruct(array.shape, array.dtype.numpy_dtype))
        for path, array in opened.items()
    }
    if reason := describe_differences(expected, found):
        raise ValueError(reason)
    for path, array in opened.items():
        store = tensorstore.KvStore.open(specs[path]["kvstore"], context=context)
        try:
            _check_storage(array, store.result())
        except ValueError as error:
            # Not from it: the innermost error is what users are shown.
            raise ValueError(f"{path}: {error}") from None
    reading = {path: array.read() for path, array in opened.items()}
    return {path: array.result() for path, array in reading.items()}


def _spec(directory: Path, name: str) -> dict[str, Any]:
    # TensorStore refuses paths with "..".
    base = {"driver": "file", "path": f"{directory.resolve()}/"}
    return {
        "driver": "zarr",
        "kvstore": {"driver": "ocdbt", "base": base, "path": f"{name}/"},
    }


def _check_storage(array: tensorstore.TensorStore, store: tensorstore.KvStore) -> None:
    """Checks that the chunks of an array take as much memory as it does.

    Raises:
      ValueError: they may take more.
    """
    metadata = array.spec().to_json()["metadata"]
    chunk, compressor = metadata["chunks"], metadata["compressor"] or {"id": "none"}
    if compressor["id"] not in ("none", "zstd") or metadata["filters"]:
        raise ValueError(f"its chunks are compressed by {compressor['id']}, not zstd")
    if any(
        size > max(length, 1) for size, length in zip(chunk, array.shape, strict=True)
    ):
        raise ValueError(f"its chunks of {chunk} are larger than {list(array.shape)}")
    counts = [
        -(-length // size) for size, length in zip(chunk, array.shape, strict=True)
    ]
    if math.prod(counts) > _MAX_CHUNKS:
        raise ValueError(f"it has {math.prod(counts):,} chunks")
    factor, more = _ZSTD_SLACK
    most = factor * math.prod(chunk) * array.dtype.numpy_dtype.itemsize + more
    separator = metadata["dimension_separator"]
    for numbers in itertools.product(*map(range, counts)):
        if compressor["id"] == "zstd":
            content = store.read(separator.join(map(str, numbers)) or "0").result()
            if content.value and _zstd_bound(content.value) > most:
                raise ValueError("a chunk unpacks to more than its size")


def _zstd_bound(content: bytes) -> int:
    """Returns how many bytes frames of zstd unpack to at most, without unpacking them.

    The formats of frame and blocks are of RFC 8878, section 3.1.1.

    Raises:
      ValueError: it is something else.
    """
    total, position = 0, 0
    while position < len(content):
        if content[position : position + 4] != _ZSTD_MAGIC:
            raise ValueError("a chunk is not of zstd")
        flags = content[position + 4]
        is_single = flags >> 5 & 1
        sizes = ([is_single, 2, 4, 8][flags >> 6], [0, 1, 2, 4][flags & 3])
        position += 5 + (not is_single) + sum(sizes)
        is_last = False
        while not is_last:
            header = int.from_bytes(content[position : position + 3], "little")
            is_last, kind, size = header & 1 == 1, header >> 1 & 3, header >> 3
            total += _ZSTD_BLOCK_BYTES if kind == _COMPRESSED else size
            position += 3 + (1 if kind == _REPEATED else size)
            if position > len(content):
                raise ValueError("a chunk is truncated")
        position += 4 * (flags >> 2 & 1)  # checksum
    return total
