"""Reads arrays of `.npz` files, without trusting the sizes that they claim."""

from __future__ import annotations

import io
import math
import tokenize
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from t2t_jax.errors import DataError
from t2t_jax.exchange.readers.archive import BAD_ZIP_ERRORS, Archive

Array: TypeAlias = npt.NDArray[Any]

_KINDS = "biuf"  # no objects, which would be pickles
_BAD_ARRAY_ERRORS = (MemoryError, SyntaxError, TypeError, tokenize.TokenError)


def read_npz(path: Path) -> dict[str, Array]:
    """Reads all arrays of a file of `numpy.savez`, or of Marian.

    Returns:
      Read-only arrays of numbers by name.

    Raises:
      DataError: the file is truncated, malformed or compressed, or has objects.
      OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file, Archive(file) as archive:
            names = [name.removesuffix(".npy") for name in archive.sizes]
            if len({*names}) != len(names):
                raise ValueError("two arrays have one name")
            return {
                name: _read_array(archive.read_member(member))
                for name, member in zip(names, archive.sizes, strict=True)
            }
    except (*BAD_ZIP_ERRORS, *_BAD_ARRAY_ERRORS) as error:
        raise DataError(f"{path} is not a readable .npz file: {error}.") from error


def _read_array(content: bytes) -> Array:
    file = io.BytesIO(content)
    read_header = {
        (1, 0): npy.read_array_header_1_0,
        (2, 0): npy.read_array_header_2_0,
    }[npy.read_magic(file)]
    shape, is_fortran, dtype = read_header(file)
    if dtype.kind not in _KINDS:
        raise ValueError(f"it has an array of type {dtype}")
    size = math.prod(shape)
    if size * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"an array of shape {shape} has another size")
    found = np.frombuffer(content, dtype, size, offset=file.tell())
    return found.reshape(shape, order="F" if is_fortran else "C")
