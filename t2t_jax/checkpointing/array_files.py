"""Reads the arrays of an item of a checkpoint, without Orbax.

Orbax stores an array as Zarr in a key-value store of TensorStore, named by its path
with dots: `encoder.layer_0.…`. Importing Orbax takes ten times as long as importing
TensorStore, and is left to what saves, and to what restores a training state.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorstore

from t2t_jax.devices.sharding.rules import dtype_shape

_DTYPE = re.compile("[<|][a-z][1248]|bfloat16")
_MAX_METADATA_BYTES = 4096
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
    stores = {
        path: tensorstore.KvStore.open(spec["kvstore"], context=context).result()
        for path, spec in specs.items()
    }
    try:
        for path, store in stores.items():
            # TensorStore makes an element of any type that the metadata ask for.
            _check_storage(store, expected[path])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # Not from it: the innermost error is what users are shown.
        raise ValueError(f"{path}: {error}") from None
    opening = [tensorstore.open(x, read=True, context=context) for x in specs.values()]
    reading = [array.result().read() for array in opening]
    return {path: one.result() for path, one in zip(specs, reading, strict=True)}


def _spec(directory: Path, name: str) -> dict[str, Any]:
    # TensorStore refuses paths with "..".
    base = {"driver": "file", "path": f"{directory.resolve()}/"}
    store = {"driver": "ocdbt", "base": base, "path": f"{name}/"}
    return {"driver": "zarr", "kvstore": store}


def _check_storage(store: tensorstore.KvStore, expected: str) -> None:
    """Checks that an array is as expected, and takes no more memory in its chunks.

    Raises:
      AttributeError, LookupError, TypeError, ValueError: it is not.
    """
    content = store.read(".zarray").result().value
    if not 0 < len(content) <= _MAX_METADATA_BYTES:
        raise ValueError(f"it was saved as {expected} and is missing")
    metadata = json.loads(content)
    shape, chunk, name = (metadata[key] for key in ("shape", "chunks", "dtype"))
    dtype = np.dtype(name if _DTYPE.fullmatch(name) else "")
    found = dtype_shape(jax.ShapeDtypeStruct(shape, dtype))
    if found != expected:
        raise ValueError(f"it was saved as {expected} and is {found}")
    compressor = metadata["compressor"] or {"id": "none"}
    if compressor["id"] not in ("none", "zstd") or metadata["filters"]:
        raise ValueError(f"its chunks are compressed by {compressor['id']}, not zstd")
    sides = [*zip(chunk, shape, strict=True)]
    if not all(0 < size <= max(length, 1) for size, length in sides):
        raise ValueError(f"its chunks of {chunk} are larger than {shape}")
    counts = [-(-length // size) for size, length in sides]
    if math.prod(counts) > _MAX_CHUNKS:
        raise ValueError(f"it has {math.prod(counts):,} chunks")
    if compressor["id"] == "none":
        return
    factor, more = _ZSTD_SLACK
    most = factor * math.prod(chunk) * dtype.itemsize + more
    separator = metadata.get("dimension_separator", ".")
    for numbers in itertools.product(*map(range, counts)):
        key = separator.join(map(str, numbers)) or "0"
        if _zstd_bound(store.read(key).result().value) > most:
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
