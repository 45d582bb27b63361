"""Writes checkpoints as TensorFlow's `Saver` does, without TensorFlow."""

import struct

import google_crc32c
import numpy as np

NUMBERS = {
    np.dtype(np.float32): 1,
    np.dtype(np.int32): 3,
    np.dtype(np.int64): 9,
    np.dtype(np.float16): 19,
}


def crc32c(content):
    value = google_crc32c.value(content)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    if isinstance(value, bytes):
        return varint(8 * number + 2) + varint(len(value)) + value
    return varint(8 * number) + varint(value)


def entry(array, *, shard, offset, **other):
    dimensions = b"".join(field(2, field(1, n)) for n in array.shape)
    fields = {1: NUMBERS[array.dtype], 2: dimensions, 3: shard, 4: offset}
    fields |= {5: array.nbytes} | other.get("fields", {})
    message = b"".join(field(number, value) for number, value in fields.items())
    return message + varint(8 * 6 + 5) + struct.pack("<I", crc32c(array.tobytes()))


def block(items):
    out, last = b"", b""
    for key, value in items:
        shared = 0
        while shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        out += key[shared:] + value
        last = key
    return out + struct.pack("<II", 0, 1)


def with_trailer(content):
    return content + b"\0" + struct.pack("<I", crc32c(content + b"\0"))


def save(prefix, tensors, *, num_shards=2, per_block=3, header=b"", times=1, **other):
    """Writes index and data; tensors go to the shards in turns.

    Args:
      times: how often the table refers to each of its blocks.
    """
    data = [b""] * num_shards
    items = [(b"", header or field(1, num_shards) + field(3, field(1, 1)))]
    for number, (name, array) in enumerate(sorted(tensors.items())):
        shard = number % num_shards
        message = entry(array, shard=shard, offset=len(data[shard]), **other)
        items.append((name.encode(), message))
        data[shard] += array.tobytes()
    table, handles = b"", []
    for begin in range(0, len(items), per_block):
        group = items[begin : begin + per_block]
        content = block(group)
        handles.append((group[-1][0], varint(len(table)) + varint(len(content))))
        table += with_trailer(content)
    ends = b""
    for content in (block([]), block(handles * times)):
        ends += varint(len(table)) + varint(len(content))
        table += with_trailer(content)
    footer = ends.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    prefix.with_name(f"{prefix.name}.index").write_bytes(table + footer)
    for shard, content in enumerate(data):
        name = f"{prefix.name}.data-{shard:05d}-of-{num_shards:05d}"
        prefix.with_name(name).write_bytes(content)
