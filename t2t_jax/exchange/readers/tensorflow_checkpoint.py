"""Reads checkpoints of TensorFlow's `Saver`, version 2, without TensorFlow.

`NAME.index` is a table of LevelDB from tensor names to a protocol buffer each, which
gives type, shape, and the bytes in a file `NAME.data-SHARD-of-SHARDS`. All checksums
(CRC-32C) are verified.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from t2t_jax.data.files.lines import require_files
from t2t_jax.errors import require_package
from t2t_jax.files import damage_as_data_error, map_file, read_limited

Array: TypeAlias = npt.NDArray[Any]

_MAX_INDEX_BYTES = 64 << 20
_MAX_KEY_BYTES = 4_096
_MAX_DIMENSIONS = 8
_FOOTER_BYTES = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER_BYTES = 5  # type of compression, checksum

# The numbers of TensorFlow's DataType.
_DTYPES: Mapping[int, npt.DTypeLike] = {
    1: np.float32,
    2: np.float64,
    3: np.int32,
    4: np.uint8,
    5: np.int16,
    6: np.int8,
    9: np.int64,
    10: np.bool_,
    14: ml_dtypes.bfloat16,
    19: np.float16,
}


class _Entry(NamedTuple):
    """Where a tensor is, and its checksum."""

    dtype: npt.DTypeLike
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc32c: int


def read_tensorflow_checkpoint(prefix: Path) -> dict[str, Array]:
    """Reads all tensors of a checkpoint.

    Args:
      prefix: path without `.index`, such as `model.ckpt-250000`.

    Returns:
      Read-only arrays by name.

    Raises:
      InputMissingError: a file of the checkpoint does not exist.
      DataError: the checkpoint is damaged, or of another kind.
      UnavailableError: it does not fit into the address space.
      UserError: the package google-crc32c is not installed.
    """
    user = "A checkpoint of TensorFlow"
    require_package("google_crc32c", user=user, extra="exchange")
    index = prefix.with_name(f"{prefix.name}.index")
    require_files(index, change="--from")
    with damage_as_data_error(f"{prefix} is not a readable checkpoint of TensorFlow"):
        advice = "Pass another checkpoint."
        content = read_limited(index, max_bytes=_MAX_INDEX_BYTES, advice=advice)
        num_shards, entries = _read_index(content)
        shards = _open_shards(prefix, num_shards)
        if sum(entry.size for entry in entries.values()) > sum(map(len, shards)):
            raise ValueError("its tensors overlap, or a data file is truncated")
        return {name: _read_tensor(shards, one) for name, one in entries.items()}


def _open_shards(prefix: Path, number: int) -> list[Array]:
    paths = [
        prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{number:05d}")
        for shard in range(number)
    ]
    require_files(*paths, change="--from")
    return list(map(map_file, paths))


def _read_tensor(shards: list[Array], entry: _Entry) -> Array:
    element = np.dtype(entry.dtype).newbyteorder("<")
    if entry.size != math.prod(entry.shape) * element.itemsize:
        raise ValueError(f"shape {entry.shape} does not take {entry.size:,} bytes")
    content = shards[entry.shard][entry.offset : entry.offset + entry.size]
    if len(content) != entry.size:
        raise ValueError("a data file is truncated")
    _check_crc32c(content.tobytes(), entry.crc32c)
    found = np.frombuffer(content, element).reshape(entry.shape)
    return found.astype(entry.dtype, copy=False)


def _read_index(content: bytes) -> tuple[int, dict[str, _Entry]]:
    """Reads the table; returns the number of shards, and the entries by name."""
    footer = content[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or footer[-8:] != struct.pack("<Q", _MAGIC):
        raise ValueError("its index does not end as a table")
    numbers = _Varints(footer)
    # After the place of the index of metadata, which is empty.
    _, _, start, size = (numbers.next() for _ in range(4))
    header, entries, num_read, key_bytes = None, {}, 0, 0
    for _, handle in _block_entries(_block(content, start, size)):
        position = _Varints(handle)
        data = _block(content, position.next(), position.next())
        if (num_read := num_read + len(data)) > len(content):
            raise ValueError("the blocks of its index overlap")
        for key, value in _block_entries(data):
            if (key_bytes := key_bytes + len(key)) > _MAX_INDEX_BYTES:
                raise ValueError(f"its names have more than {_MAX_INDEX_BYTES:,} bytes")
            if not key:
                header = _read_header(value)
            else:
                entries[key.decode()] = _read_entry(value)
    if header is None:
        raise ValueError("its index has no header")
    return header, entries


def _block(content: bytes, offset: int, size: int) -> bytes:
    """Returns a block of the table without its trailer, after verifying it."""
    block = content[offset : offset + size]
    trailer = content[offset + size : offset + size + _TRAILER_BYTES]
    compression, crc32c = struct.unpack("<BI", trailer)
    _check_crc32c(block + trailer[:1], crc32c)
    if compression:
        raise ValueError("its index is compressed")
    return block


def _block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a block; a key shares a prefix with the last."""
    (num_restarts,) = struct.unpack("<I", block[-4:])
    entries = _Varints(block[: len(block) - 4 * (num_restarts + 1)])
    key = b""
    while not entries.is_at_end:
        shared, rest, size = entries.next(), entries.next(), entries.next()
        if shared > len(key):
            raise ValueError("its index has a key without a prefix")
        if shared + rest > _MAX_KEY_BYTES:
            raise ValueError(f"its index has a key of {shared + rest:,} bytes")
        key = key[:shared] + entries.take(rest)
        yield key, entries.take(size)


def _read_header(message: bytes) -> int:
    """Returns the number of shards of a BundleHeaderProto."""
    fields = dict(_fields(message))
    if fields.get(2):
        raise ValueError("it is of a machine of the other byte order")
    number = fields.get(1, 0)
    if not isinstance(number, int) or not 0 < number <= 99_999:
        raise ValueError(f"it has {number!r} shards")
    return number


def _read_entry(message: bytes) -> _Entry:
    """Reads a BundleEntryProto."""
    fields = dict(_fields(message))
    if 7 in fields:
        raise ValueError("it has sliced tensors")
    sizes = (one for number, one in _fields(fields.get(2, b"")) if number == 2)
    shape = [dict(_fields(one)).get(1, 0) for one in sizes]
    dtype = _DTYPES.get(fields.get(1, 0))
    if dtype is None:
        raise ValueError(f"it has tensors of type {fields.get(1)!r}")
    if len(shape) > _MAX_DIMENSIONS:
        raise ValueError(f"it has a tensor of {len(shape):,} dimensions")
    shard, offset, size = (fields.get(number, 0) for number in (3, 4, 5))
    numbers = (*shape, shard, offset, size, fields[6])
    # Bytes times a number would be as many bytes.
    if any(type(number) is not int for number in numbers):
        raise ValueError("its index has bytes in place of a number")
    return _Entry(dtype, tuple(shape), shard, offset, size, crc32c=fields[6])


def _fields(message: Any) -> Iterator[tuple[int, Any]]:
    """Yields the fields of a protocol buffer: (number, int or bytes)."""
    position = _Varints(message)
    while not position.is_at_end:
        number, kind = divmod(position.next(), 8)
        if kind == 0:
            yield number, position.next()
        elif kind == 2:
            yield number, position.take(position.next())
        elif kind == 5:
            yield number, struct.unpack("<I", position.take(4))[0]
        else:
            raise ValueError(f"its index has a field of type {kind}")


class _Varints(io.BytesIO):
    """Reads variable-length integers and bytes one after another."""

    @property
    def is_at_end(self) -> bool:
        return self.tell() == self.getbuffer().nbytes

    def next(self) -> int:
        """Reads an integer of 7 bits a byte, the lowest first, up to 64 bits."""
        number = 0
        for shift in range(0, 64, 7):
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise ValueError("its index has an integer of more than 64 bits")

    def take(self, size: int) -> bytes:
        """Reads bytes."""
        # `read` takes 63 bits, and an index has fewer bytes than its limit.
        if len(found := self.read(min(size, _MAX_INDEX_BYTES))) < size:
            raise ValueError("its index is truncated")
        return found


def _check_crc32c(content: bytes, masked: int) -> None:
    import google_crc32c

    # LevelDB stores checksums rotated, so that those of checksums differ.
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    expected = (rotated >> 17) | (rotated << 15) & 0xFFFFFFFF
    if google_crc32c.value(content) != expected:
        raise ValueError("a checksum does not match: it was damaged")
