"""What tells whether arrays and JSON are still what was saved.

The JSON of a checkpoint holds a checksum of each array, and a digest of itself. A
leaf's checksum is two sums, modulo 2^32, over its elements: each element's bits are
mixed with its place in the whole array, in another way for each sum. A sum has no
order, so the checksum is the same however the array is split over devices; and as both
ways of mixing are one to one in the bits, a single changed element always changes it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from t2t_jax.runtime.async_fetch import fetch_pipelined
from t2t_jax.types import PyTree

FORMAT = 1
"""Of the checkpoints that are written; those of another one are not read.

The digest is made alike in all formats, so that a damaged number is none of them.
"""

CHECKSUM_KEYS = ("format", "checksums", "files", "digest")
"""What a checkpoint adds to the JSON that it was given."""

_PLACE_FACTORS = (0x9E3779B1, 0x85EBCA77)
# Odd, so that multiplying modulo 2^32 loses no bit; each pair is one way of mixing.
_MIXERS = ((0x85EBCA6B, 0xC2B2AE35), (0x7FEB352D, 0x846CA68B))
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32}
# So many elements at once keep NumPy's intermediate arrays in the processor's cache.
_CHUNK = 1 << 18


def checksums(tree: PyTree) -> dict[str, str]:
    """Computes the checksum of each array of a tree, where the array lies.

    Of arrays that reach over several processes all processes must come here.

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
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    for path, leaf in leaves:
        if np.dtype(leaf.dtype).itemsize not in _WORDS:
            raise ValueError(
                f"{_name(path)} must have elements of 1, 2 or 4 bytes to be saved, and "
                f"has {leaf.dtype}. Use another dtype."
            )
    sums = fetch_pipelined(
        _program(_everywhere(leaf))(leaf)
        if isinstance(leaf, jax.Array)
        else checksum_numpy(np.asarray(leaf))
        for _, leaf in leaves
    )
    return {
        _name(path): f"{describe(leaf)} {first:08x}{second:08x}"
        for (path, leaf), (first, second) in zip(leaves, sums, strict=True)
    }


def dtype_shapes(tree: PyTree) -> dict[str, str]:
    """Describes each array of a tree, by its path; their shapes are enough.

    Example:
      >>> dtype_shapes((np.zeros((2, 3), np.int8),))
      {'0': 'int8[2,3]'}
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(path): describe(leaf) for path, leaf in leaves}


def describe(leaf: Any) -> str:
    """Writes an array's dtype and shape as the first part of a checksum's text.

    Example:
      >>> describe(np.zeros((), np.int32))
      'int32[]'
    """
    return f"{np.dtype(leaf.dtype).name}[{','.join(map(str, leaf.shape))}]"


def differences(saved: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Says in which arrays two texts by path differ; "" if in none.

    Example:
      >>> differences({"a": "int8[2] 05", "b": "int8[2] 06"}, {"a": "int8[2] 07"})
      'a was saved as int8[2] 05 and is int8[2] 07, and 1 more'
    """
    paths = [
        path
        for path in dict.fromkeys([*saved, *found])
        if saved.get(path) != found.get(path)
    ]
    if not paths:
        return ""
    first, missing = paths[0], "missing"
    more = f", and {len(paths) - 1} more" if len(paths) > 1 else ""
    return (
        f"{first} was saved as {saved.get(first, missing)} and is "
        f"{found.get(first, missing)}{more}"
    )


def add_checksums(
    meta: Mapping[str, Any], trees: Mapping[str, PyTree]
) -> dict[str, Any]:
    """Adds to JSON what tells whether it, and arrays beside it, are as they were.

    Args:
      trees: pytrees of arrays by name.

    Example:
      >>> sorted(add_checksums({"step": 7}, {"params": {}}))
      ['checksums', 'digest', 'format', 'step']
    """
    sums = {name: checksums(tree) for name, tree in trees.items()}
    sealed = {**meta, "format": FORMAT, "checksums": sums}
    return {**sealed, "digest": digest(sealed)}


def verify_checksums(sealed: Mapping[str, Any]) -> str:
    """Says what is wrong with JSON that was sealed; "" if nothing is.

    Example:
      >>> verify_checksums({**add_checksums({"step": 7}, {}), "step": 8})
      'its meta is not what was saved'
    """
    content = {name: value for name, value in sealed.items() if name != "digest"}
    if sealed.get("digest") != digest(content):
        return "its meta is not what was saved"
    return ""


def packed(files: Mapping[str, bytes]) -> dict[str, tuple[str, str]]:
    """Writes small files as text that goes into JSON, each with its SHA-256.

    Example:
      >>> packed({"vocab.model": b"a"})["vocab.model"][1]
      'YQ=='
    """
    return {
        name: (hashlib.sha256(content).hexdigest(), base64.b64encode(content).decode())
        for name, content in files.items()
    }


def unpacked(text: Any, sha256: str) -> bytes:
    """Returns the content of a file that `packed` has written.

    Raises:
      ValueError: it is not what was saved.

    Example:
      >>> unpacked("YQ==", packed({"": b"a"})[""][0])
      b'a'
    """
    content = base64.b64decode(str(text), validate=True)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError("its SHA-256 is not that of what was saved")
    return content


def digest(values: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of JSON values, whatever the order of their keys.

    Example:
      >>> digest({"a": 1, "b": (2,)}) == digest({"b": [2], "a": 1})
      True
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def checksum_numpy(array: np.ndarray) -> np.ndarray:
    """Computes with NumPy what `checksum_jax` computes with JAX.

    Args:
      array: any shape, elements of 1, 2 or 4 bytes.

    Returns:
      uint32 array of two.

    Example:
      >>> checksum_numpy(np.zeros(0, np.int8))
      array([0, 0], dtype=uint32)
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    words = flat.view(_WORDS[flat.dtype.itemsize])
    sums = np.zeros(2, np.uint32)
    for start in range(0, words.size, _CHUNK):
        chunk = words[start : start + _CHUNK].astype(np.uint32)
        places = np.arange(start, start + chunk.size, dtype=np.uint64)
        mixed = [
            _mix(chunk, places.astype(np.uint32), np.uint32, which) for which in (0, 1)
        ]
        sums += np.sum(mixed, axis=1, dtype=np.uint32)
    return sums


def checksum_jax(array: jax.Array) -> jax.Array:
    """Computes the two sums of an array on its devices; to be called under `jax.jit`.

    Args:
      array: any shape and sharding, elements of 1, 2 or 4 bytes.

    Returns:
      uint32 array of two.
    """
    if array.dtype == jnp.bool_:
        array = array.astype(jnp.uint8)
    word = _WORDS[array.dtype.itemsize]
    words = jax.lax.bitcast_convert_type(array, word).astype(jnp.uint32)
    # One iota an axis, and nothing reshaped: each device numbers what it holds.
    places, stride = jnp.zeros(array.shape, jnp.uint32), 1
    for axis in reversed(range(array.ndim)):
        along = jax.lax.broadcasted_iota(jnp.uint32, array.shape, axis)
        places = places + along * jnp.uint32(stride % (1 << 32))
        stride *= array.shape[axis]
    return jnp.stack(
        [
            jnp.sum(_mix(words, places, jnp.uint32, which), dtype=jnp.uint32)
            for which in (0, 1)
        ]
    )


def _mix(bits: Any, places: Any, word: Callable[[int], Any], which: int) -> Any:
    """Scrambles bits and places: shifts and odd factors, all of which can be undone."""
    first, second = _MIXERS[which]
    mixed = bits ^ _scramble(places * word(_PLACE_FACTORS[which]), word, first, second)
    return _scramble(mixed + word(_PLACE_FACTORS[which]), word, second, first)


def _scramble(x: Any, word: Callable[[int], Any], first: int, second: int) -> Any:
    x = (x ^ (x >> word(16))) * word(first)
    x = (x ^ (x >> word(13))) * word(second)
    return x ^ (x >> word(16))


@functools.cache
def _program(everywhere: NamedSharding | None) -> Callable[[jax.Array], jax.Array]:
    program: Callable[[jax.Array], jax.Array] = jax.jit(
        checksum_jax, out_shardings=everywhere
    )
    return program


def _everywhere(leaf: jax.Array) -> NamedSharding | None:
    """Places sums where every process that holds a part of the array can read them."""
    if isinstance(leaf.sharding, NamedSharding):
        return NamedSharding(leaf.sharding.mesh, PartitionSpec())
    return None


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
