"""The one way into archives of other toolkits: zip files of torch, `.npz` of Marian.

The sizes that an archive claims are checked before anything is unpacked, and no more
than these is unpacked.
"""

from __future__ import annotations

import io
import math
import sys
import zipfile
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from t2t_jax.files import damage_as_data_error

Array: TypeAlias = npt.NDArray[Any]

_KINDS = "biuf"  # of arrays: no objects, which would be pickles
# bzip2 and LZMA unpack a block at once, whatever size is asked for.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MAX_RATIO = 8
"""Most times that content may be as large as its file.

Deflated float32 weights keep 90 % of their size, and shared ones are a few.
"""
# A model has a few thousand members, of some 100 bytes each in the directory.
_MAX_DIRECTORY_BYTES = 16 << 20


class Archive(zipfile.ZipFile):
    """A zip archive whose members unpack to a bounded multiple of its size.

    Attributes:
      sizes: of the unpacked members in bytes, by name.

    Raises:
      BadZipFile: it is compressed otherwise than by deflate, or claims more than that.
      Exception: of many kinds, if it is damaged; see `files.damage_as_data_error`.
    """

    def __init__(self, file: IO[bytes]):
        # `zipfile` makes an object for each member.
        limited = LimitedFile(file, _MAX_DIRECTORY_BYTES, name="its directory")
        super().__init__(limited)
        limited.left = sys.maxsize >> 1
        members = self.infolist()
        self.sizes = {member.filename: member.file_size for member in members}
        size = file.seek(0, io.SEEK_END)
        if any(member.compress_type not in _METHODS for member in members):
            raise zipfile.BadZipFile("a member is neither stored nor deflated")
        if len(self.sizes) < len(members):
            raise zipfile.BadZipFile("two members have one name")
        if sum(member.compress_size for member in members) > size:
            raise zipfile.BadZipFile("its members overlap")
        if sum(self.sizes.values()) > MAX_RATIO * size:
            raise zipfile.BadZipFile(
                f"its members unpack to more than {MAX_RATIO} times its size"
            )

    def read_member(self, name: str, *, most: int | None = None) -> bytes:
        """Returns the content of a member of at most `most` bytes."""
        size = self.sizes[name]
        if most is not None and size > most:
            raise zipfile.BadZipFile(f"{name} has {size:,} bytes")
        with self.open(name) as member:
            # Without a size, whatever the member unpacks to is in memory first.
            content = member.read(size)
        if len(content) != size:
            raise zipfile.BadZipFile(f"{name} has fewer than {size:,} bytes")
        return content


class LimitedFile:
    """A file of which `left` bytes may still be read.

    Args:
      name: of what is read, for the message of the ValueError.
    """

    def __init__(self, file: IO[bytes], left: int, *, name: str):
        self._file, self.left = file, left
        self._message = f"{name} has more than {left:,} bytes"

    def read(self, size: int = -1) -> bytes:
        """Reads bytes; all of the rest, uncounted, for a negative size."""
        self._take(max(size, 0))
        return self._file.read(size)

    def readline(self) -> bytes:
        """Reads up to the end of a line."""
        line = self._file.readline(self.left + 1)
        self._take(len(line))
        return line

    def _take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise ValueError(self._message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def read_npz(path: Path) -> dict[str, Array]:
    """Reads all arrays of a file of `numpy.savez`, or of Marian.

    Returns:
      Read-only arrays of numbers by name.

    Raises:
      DataError: the file is truncated, malformed or compressed, or has objects.
      OSError: it cannot be read.
    """
    with (
        damage_as_data_error(f"{path} is not a readable .npz file"),
        path.open("rb") as file,
        Archive(file) as archive,
    ):
        names = [name.removesuffix(".npy") for name in archive.sizes]
        if len({*names}) != len(names):
            raise ValueError("two arrays have one name")
        named = zip(names, archive.sizes, strict=True)
        return {name: _read_array(archive.read_member(one)) for name, one in named}


def _read_array(content: bytes) -> Array:
    file = io.BytesIO(content)
    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, is_fortran, dtype = headers[npy.read_magic(file)](file)
    if dtype.kind not in _KINDS:
        raise ValueError(f"it has an array of type {dtype}")
    size = math.prod(shape)
    if size * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"an array of shape {shape} has another size")
    found = np.frombuffer(content, dtype, size, offset=file.tell())
    return found.reshape(shape, order="F" if is_fortran else "C")
