"""Checksums of arrays, small files and JSON.

The JSON object of a checkpoint holds a checksum of each array and a digest of itself.
The checksum of an array is two sums modulo 2^32 over its elements: each element's bits
are mixed with its index in the global array, differently for each sum. A sum does not
depend on the order, so the checksum does not depend on the sharding. Both mixing
functions are bijective in the bits: a single changed element always changes the sum.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from t2t_jax.devices.distributed.gather import fetch_pipelined
from t2t_jax.devices.sharding.rules import dtype_shape, leaves_by_path
from t2t_jax.types import PyTree

FORMAT = 1
"""Format of the checkpoints that are written; no other format is read.

All formats compute the digest alike, so a corrupt format number is detected.
"""

CHECKSUM_KEYS = ("format", "checksums", "files", "digest")
"""The keys that a checkpoint adds to its JSON object."""

# Odd, so that multiplication modulo 2^32 is bijective; one, and one pair, for each sum.
_INDEX_FACTORS = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)
_MIXERS = np.array([[0x85EBCA6B, 0xC2B2AE35], [0x7FEB352D, 0x846CA68B]], np.uint32)
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32}
# Elements per chunk: NumPy's intermediate arrays then fit the processor's cache.
_CHUNK = 1 << 18


def checksums(tree: PyTree) -> dict[str, str]:
    """Computes the checksum of each array of a tree, on the devices that hold it.

    NumPy computes those of small arrays of one CPU: tracing a program for each of their
    shapes and loading it takes ten times as long.

    Collective for arrays that span several processes: call on every process.

    Args:
      tree: arrays of JAX or NumPy with elements of 1, 2 or 4 bytes.

    Returns:
      By path, `encoder/layer_0/…`, a text of dtype, shape and 16 hexadecimal digits.

    Raises:
      ValueError: an array's elements have another size.

    Example:
      >>> checksums({"bias": np.zeros(3, np.float32)})
      {'bias': 'float32[3] 0f10a12406fa112e'}
    """
    leaves = leaves_by_path(tree)
    for path, leaf in leaves.items():
        if np.dtype(leaf.dtype).itemsize not in _WORDS:
            raise ValueError(
                f"{path} must have elements of 1, 2 or 4 bytes to be saved, "
                f"and has {leaf.dtype}. Use another dtype."
            )
    sums = fetch_pipelined(
        _compiled_checksum(_replicated(leaf))(leaf)
        if isinstance(leaf, jax.Array) and not _is_small_on_cpu(leaf)
        else checksum_numpy(np.asarray(leaf))
        for leaf in leaves.values()
    )
    return {
        path: f"{dtype_shape(leaf)} {first:08x}{second:08x}"
        for (path, leaf), (first, second) in zip(leaves.items(), sums, strict=True)
    }


def shapes_of(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the dtype and shape of each text of `checksums`."""
    return {path: text.partition(" ")[0] for path, text in texts.items()}


def add_checksums(
    meta: Mapping[str, Any], trees: Mapping[str, PyTree]
) -> dict[str, Any]:
    """Adds the checksums of arrays, the format and a digest to a JSON object."""
    sums = {name: checksums(tree) for name, tree in trees.items()}
    content = {**meta, "format": FORMAT, "checksums": sums}
    return {**content, "digest": json_digest(content)}


def verify_checksums(meta: Mapping[str, Any]) -> str:
    """Verifies the digest of a JSON object; returns the fault, "" if there is none."""
    content = {name: value for name, value in meta.items() if name != "digest"}
    is_same = meta.get("digest") == json_digest(content)
    return "" if is_same else "its meta differs from what was saved"


def pack_files(files: Mapping[str, bytes]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the SHA-256 of small files, and their content in Base64, by name."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    texts = {name: base64.b64encode(data).decode() for name, data in files.items()}
    return digests, texts


def unpack_file(text: Any, sha256: str) -> bytes:
    """Decodes a file that `pack_files` has encoded, and verifies its SHA-256.

    Raises:
      ValueError: it differs from what was saved.
    """
    content = base64.b64decode(str(text), validate=True)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError("the SHA-256 differs from the saved one")
    return content


def json_digest(values: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a JSON object, independent of the order of its keys.

    Example:
      >>> json_digest({"a": 1, "b": (2,)}) == json_digest({"b": [2], "a": 1})
      True
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def checksum_numpy(array: np.ndarray) -> np.ndarray:
    """Computes the two uint32 sums with NumPy, as `checksum_jax` does with JAX."""
    flat = np.ascontiguousarray(array).reshape(-1)
    words = flat.view(_WORDS[flat.dtype.itemsize])
    sums = np.zeros(2, np.uint32)
    for start in range(0, words.size, _CHUNK):
        chunk = words[start : start + _CHUNK].astype(np.uint32)
        indices = np.arange(start, start + chunk.size, dtype=np.uint64)
        sums += np.sum(_mix(chunk, indices.astype(np.uint32)), axis=1, dtype=np.uint32)
    return sums


def checksum_jax(array: jax.Array) -> jax.Array:
    """Computes two uint32 sums of an array of any sharding, for use under `jax.jit`."""
    if array.dtype == jnp.bool_:
        array = array.astype(jnp.uint8)
    word = _WORDS[array.dtype.itemsize]
    words = jax.lax.bitcast_convert_type(array, word).astype(jnp.uint32)
    # One iota per axis and no reshape, so that nothing is gathered.
    indices, stride = jnp.zeros(array.shape, jnp.uint32), 1
    for axis in reversed(range(array.ndim)):
        along = jax.lax.broadcasted_iota(jnp.uint32, array.shape, axis)
        indices = indices + along * np.uint32(stride % (1 << 32))
        stride *= array.shape[axis]
    sums = [jnp.sum(mixed, dtype=jnp.uint32) for mixed in _mix(words, indices)]
    return jnp.stack(sums)


def _mix(bits: Any, indices: Any) -> list[Any]:
    """Mixes bits with indices, for each sum by other shifts and odd factors.

    Both are bijective in the bits.
    """
    return [
        _scramble((bits ^ _scramble(indices * of, *mixers)) + of, *mixers[::-1])
        for of, mixers in zip(_INDEX_FACTORS, _MIXERS, strict=True)
    ]


def _scramble(x: Any, first: np.uint32, second: np.uint32) -> Any:
    x = (x ^ (x >> 16)) * first
    x = (x ^ (x >> 13)) * second
    return x ^ (x >> 16)


_compiled_checksum = functools.cache(lambda to: jax.jit(checksum_jax, out_shardings=to))


def _is_small_on_cpu(leaf: jax.Array) -> bool:
    platforms = [device.platform for device in leaf.devices()]
    return platforms == ["cpu"] and leaf.size <= _CHUNK


def _replicated(leaf: jax.Array) -> NamedSharding | None:
    """Returns a sharding that replicates the sums over the mesh of an array."""
    if isinstance(leaf.sharding, NamedSharding):
        return NamedSharding(leaf.sharding.mesh, PartitionSpec())
    return None
